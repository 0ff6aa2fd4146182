import { render } from "preact";
import { App } from "./shell/app.tsx";
import "./style/page.css";

render(<App />, document.body);
