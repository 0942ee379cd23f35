import { describe, expect, it } from 'vitest'
import { createRequestStates, type PromptedRequest, type Retry } from '../../../src/elicitation/request-state.ts'
import { callerWith } from '../../support/authorize/ruled.ts'
import { createTestLinks } from '../../support/elicitation.ts'
import { createManualClock } from '../../support/ports.ts'

const REQUEST: PromptedRequest = {
  caller: callerWith({}, 'alice'),
  route: 'code',
  method: 'tools/call',
  params: { name: 'read', arguments: { path: 'a' }, _meta: { progressToken: 1 } },
}

function start() {
  const clock = createManualClock()
  const states = createRequestStates(createTestLinks(), clock)
  const read = (requestState: string, more: Partial<PromptedRequest> = {}) => {
    const request = { ...REQUEST, ...more }
    return states.read({ ...request, params: { ...request.params, requestState } })
  }
  return { clock, states, read }
}

describe('the state of a prompt', () => {
  it('belongs to its caller, route, method and parameters; metadata may differ', async () => {
    const { states, read } = start()
    const state = states.write(REQUEST, undefined)
    const { params } = REQUEST
    expect(await read(state, { params: { ...params, _meta: {} } })).toMatchObject({ isOurs: true })
    for (const other of [
      { caller: callerWith({}, 'bob') },
      { caller: { ...callerWith({}, 'alice'), issuer: 'https://other.example' } },
      { caller: { kind: 'anonymous' } as const },
      { route: 'notes' },
      { method: 'prompts/get' },
      { params: { ...params, name: 'write' } },
      { params: { ...params, cursor: 'x' } },
    ])
      await expect(read(state, other)).rejects.toMatchObject({ code: 'bad_request' })
  })

  it('is told from a state of the backend', async () => {
    const { read } = start()
    expect(await read('of the backend')).toEqual({ isOurs: false, retry: undefined })
  })

  it('is valid for ten minutes from the first prompt, however many follow', async () => {
    const { clock, states, read } = start()
    let retry: Retry | undefined
    for (const prompts of [1, 2]) {
      ;({ retry } = await read(states.write(REQUEST, retry)))
      expect(retry).toMatchObject({ prompts })
      clock.advance(4 * 60_000)
    }
    const last = states.write(REQUEST, retry)
    clock.advance(2 * 60_000 - 1)
    expect((await read(last)).retry).toMatchObject({ prompts: 3 })
    clock.advance(1)
    expect(await read(last)).toEqual({ isOurs: true, retry: undefined })
  })
})
