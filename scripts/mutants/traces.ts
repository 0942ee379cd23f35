import type { Mutation } from './mutation.ts'

/** What traces say of requests, and where they come from. */
export const TRACES: readonly Mutation[] = [
  {
    rule: 'version ff is no trace',
    file: 'src/telemetry/traceparent.ts',
    find: "version === 'ff' || ",
    replace: '',
    tests: ['test/unit/telemetry/traceparent.test.ts'],
  },
  {
    rule: 'version 00 ends with its flags',
    file: 'src/telemetry/traceparent.ts',
    find: "(version === '00' && more !== undefined)",
    replace: "version === ''",
    tests: ['test/unit/telemetry/traceparent.test.ts'],
  },
  {
    rule: 'a trace of zeros is none',
    file: 'src/telemetry/traceparent.ts',
    find: 'if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined',
    replace: '',
    tests: ['test/unit/telemetry/traceparent.test.ts'],
  },
  {
    rule: 'of the flags only the one that is known goes on',
    file: 'src/telemetry/traceparent.ts',
    find: 'Number.parseInt(flags, 16) & TraceFlags.SAMPLED,',
    replace: 'Number.parseInt(flags, 16),',
    tests: ['test/unit/telemetry/traceparent.test.ts'],
  },
]
