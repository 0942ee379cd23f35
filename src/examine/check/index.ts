export { runChecks } from './run.ts'
export { countsOf, renderSection, renderSummary, renderTrouble } from './text.ts'
