/** What the bundler makes of elements: calls of `h`, which take less room than the form that the compiler checks. */
export { Fragment, h } from "preact";
