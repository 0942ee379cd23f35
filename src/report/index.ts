export { LOG_LEVELS, type LogLevel } from './log-level.ts'
export { countLostLines, LOG_FORMATS, type LogFormat, openLog, type OpenLog, type ReportingLog } from './logging.ts'
export { type MetricsSnapshot, openMetrics, type OpenMetrics } from './metrics.ts'
