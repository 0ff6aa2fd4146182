/** A stylesheet is bundled where it is imported. */
declare module "*.css";
