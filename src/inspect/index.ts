export { createInspector, INSPECT_PATH, type Inspector, type InspectorOptions } from './inspector.ts'
export type { OwnRequest, TryDeps } from './try.ts'
