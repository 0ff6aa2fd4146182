import { isObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { SchemaNode } from "../node.ts";

/**
 * All schemas of the old document that look at one place of a payload, whichever way its choices go. They tell which names
 * the old document mentions there, and so promises anything about.
 */
export interface View {
  readonly id: number;
  readonly shapes: readonly SchemaNode[];
}

export class Views {
  readonly root: View;
  readonly #views = new Map<string, View>();
  readonly #steps = new Map<string, View>();

  constructor(root: SchemaNode) {
    this.root = this.#view([root]);
  }

  member(view: View, name: string): View {
    return this.#step(`${view.id}.${name}`, () => view.shapes.flatMap((shape) => shape.memberNodes(name)));
  }

  item(view: View, index: number): View {
    return this.#step(`${view.id}[${index}]`, () =>
      view.shapes.flatMap((shape) => [shape.itemNode(index) ?? [], shape.contains ?? []].flat()),
    );
  }

  /** Whether the old document says anything about a member of that name here. */
  mentions({ shapes }: View, name: string): boolean {
    return shapes.some((shape) => mentions(shape, name));
  }

  #step(key: string, shapes: () => SchemaNode[]): View {
    let view = this.#steps.get(key);
    if (view === undefined) {
      view = this.#view(shapes());
      this.#steps.set(key, view);
    }
    return view;
  }

  #view(of: readonly SchemaNode[]): View {
    const shapes = inPlace(of);
    const key = shapes
      .map(({ id }) => id)
      .toSorted((a, b) => a - b)
      .join();
    let view = this.#views.get(key);
    if (view === undefined) {
      view = { id: this.#views.size, shapes };
      this.#views.set(key, view);
    }
    return view;
  }
}

/** The schemas and all within them that look at the same value. */
function inPlace(of: readonly SchemaNode[]): SchemaNode[] {
  const seen = new Set<SchemaNode>();
  const waiting = [...of];
  for (let shape = waiting.pop(); shape !== undefined; shape = waiting.pop()) {
    spend(1);
    if (seen.has(shape)) continue;
    seen.add(shape);
    if (shape.target !== undefined) waiting.push(shape.target);
    for (const { looksAt, node } of shape.subschemas) if (looksAt === "same") waiting.push(node);
  }
  return [...seen];
}

function mentions(shape: SchemaNode, name: string): boolean {
  const { properties, required, additionalProperties, propertyNames } = shape;
  const { dependentNames, dependentSchemas } = shape;
  return (
    properties.has(name) ||
    required.includes(name) ||
    shape.hasPatternFor(name) ||
    dependentSchemas.has(name) ||
    [...dependentNames].some(([other, needed]) => other === name || needed.includes(name)) ||
    // `false` says that no other name may be, a schema says what any other is.
    (additionalProperties !== undefined &&
      !additionalProperties.allowsAll &&
      !additionalProperties.allowsNone) ||
    (propertyNames !== undefined && valuesOf(propertyNames).includes(name)) ||
    valuesOf(shape).some((value) => isObject(value) && Object.hasOwn(value, name))
  );
}

function valuesOf(shape: SchemaNode): readonly unknown[] {
  const values = (shape.value("enum") ?? []) as unknown[];
  return shape.keywords.includes("const") ? [...values, shape.value("const")] : values;
}
