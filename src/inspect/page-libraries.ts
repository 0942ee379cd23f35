/** Libraries of the page: the name below `/inspect/page/` → the file below node_modules. dist/ contains copies of them. */
export const PAGE_LIBRARIES: Readonly<Record<string, string>> = {
  'lib/preact.js': 'preact/dist/preact.mjs',
  'lib/hooks.js': 'preact/hooks/dist/hooks.mjs',
  'lib/htm.js': 'htm/dist/htm.module.js',
  'lib/uplot.js': 'uplot/dist/uPlot.esm.js',
  'lib/uplot.css': 'uplot/dist/uPlot.min.css',
}
