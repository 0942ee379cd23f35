// The libraries by the addresses that the page has them at (src/inspect/assets.ts).
declare module '*/lib/preact.js' {
  export * from 'preact'
}
declare module '*/lib/hooks.js' {
  export * from 'preact/hooks'
}
declare module '*/lib/htm.js' {
  export { default } from 'htm'
}
declare module '*/lib/uplot.js' {
  export { default } from 'uplot'
}
