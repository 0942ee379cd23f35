import { describe, expect, it } from 'vitest'
import { formatTraceparent, parseTraceparent } from '../../../src/telemetry/traceparent.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

describe('a traceparent', () => {
  it('goes on with its trace, its span and the one flag that is known', () => {
    const context = parseTraceparent(`00-${TRACE}-${SPAN}-ff`)
    expect(context).toEqual({ traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true })
    expect(context && formatTraceparent(context)).toBe(`00-${TRACE}-${SPAN}-01`)
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.traceFlags).toBe(0)
  })

  it('of a later version may say more', () => {
    expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-more`)?.spanId).toBe(SPAN)
  })

  it.each([
    undefined,
    '',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  ])('is none: %s', (header) => expect(parseTraceparent(header)).toBeUndefined())
})
