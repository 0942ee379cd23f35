export { runChecks } from './run.ts'
export { countsOf, renderFailures, renderSection, renderSummary } from './text.ts'
