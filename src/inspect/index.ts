export { createInspector, INSPECT_PATH, type Inspector, withMaskedQueries } from './inspector.ts'
export type { OwnRequest } from './try.ts'
