export { runChecks } from './run.ts'
export { countsOf, renderSection, renderSummary } from './text.ts'
