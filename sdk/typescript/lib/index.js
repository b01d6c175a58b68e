// Runs of the deepseek coding agent from a program; types and their duties are in index.d.ts.
export { Client } from "./client.js";
export * from "./errors.js";
