export { openTelemetry, type Telemetry } from './telemetry.ts'
export type { SamplerName, TraceSettings } from './settings.ts'
