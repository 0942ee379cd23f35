import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { FAILURES, MARK, USER_INFO_ANSWERS } from './failure-cases.ts'
import { ACCESS, startIdp, SUBJECT, type Idp } from './idp.ts'
import { callback, createRig, LEG, SECRET } from './rig.ts'

const sockets = createSockets()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
})
afterEach(() => sockets.closeAll())

describe.each(FAILURES)('a login fails when %s', (_step, cases) => {
  it.each(cases)('$name', async ({ arrange, code, says, parameters, wait }) => {
    await arrange(idp)
    const { oidc, log } = createRig(sockets)
    const failure = await oidc(idp)
      .finish(LEG, parameters?.(idp) ?? callback(idp))
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Failure)
    if (!(failure instanceof Failure)) return
    expect(failure.code).toBe(code)
    if (says !== undefined) expect(failure.detail).toContain(says)
    if (wait !== undefined) expect(failure.retryAfterSeconds).toBe(wait)
    const shown = [failure.message, String(failure.cause), ...log.lines].join('\n')
    for (const secret of [MARK, ACCESS, SECRET, 'code-1']) expect(shown).not.toContain(secret)
  })
})

describe('user info that can’t be had', () => {
  it.each(USER_INFO_ANSWERS)('$name: keeps nobody out whose subject is in the ID token', async ({ arrange, says }) => {
    await arrange(idp)
    const { oidc, log } = createRig(sockets)
    const { subject, claims } = await oidc(idp).finish(LEG, callback(idp))
    expect([subject, claims['email'], claims['name']]).toEqual([SUBJECT, 'one@example.com', undefined])
    const said = log.lines.join('\n')
    expect(said).toContain('user info is left out')
    if (says !== undefined) expect(said).toContain(says)
    for (const secret of [MARK, ACCESS, SECRET]) expect(said).not.toContain(secret)
  })

  it.each(USER_INFO_ANSWERS)('$name: ends a login whose subject comes from it', async ({ arrange, code, wait }) => {
    await arrange(idp)
    const login = createRig(sockets).oauth2(idp).finish(LEG, callback(idp))
    await expect(login).rejects.toMatchObject({ code, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) })
  })
})
