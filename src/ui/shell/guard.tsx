import { Button } from "../parts/button.tsx";
import { Component, type ComponentChildren } from "preact";
import { Empty } from "../parts/states.tsx";
import type { Route } from "../parts/route.ts";

interface GuardProps {
  readonly route: Route;
  readonly children: ComponentChildren;
}

interface GuardState {
  /** Where the page was when something failed. */
  readonly failed?: Route;
}

/** Stands for a screen that failed, until the page leads elsewhere. */
export class Guard extends Component<GuardProps, GuardState> {
  override componentDidCatch(error: unknown): void {
    reportError(error);
    this.setState({ failed: this.props.route });
  }

  override render({ route, children }: GuardProps, { failed }: GuardState) {
    if (failed !== route) return children;
    return (
      <>
        <h1 class="sr">Not shown</h1>
        <Empty
          title="Not shown"
          button={<Button run={() => location.reload()} label="Load the page again" />}
        >
          This screen has failed.
        </Empty>
      </>
    );
  }
}
