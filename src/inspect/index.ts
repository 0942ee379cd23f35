export { createInspector, INSPECT_PATH, type Inspector, type Surroundings, withMaskedQueries } from './inspector.ts'
export type { OwnRequest } from './try.ts'
