export { createInspector, INSPECT_PATH, type Inspector, type InspectorOptions, withMaskedQueries } from './inspector.ts'
export type { OwnRequest, TryDeps } from './try.ts'
