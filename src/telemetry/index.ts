export type { SamplerName, TraceSettings } from './settings.ts'
export { openTelemetry, type Telemetry } from './telemetry.ts'
