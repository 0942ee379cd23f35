import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { FAILURES, MARK, USER_INFO_ANSWERS } from '../../support/upstreams/failure-cases.ts'
import { ACCESS, startIdp, SUBJECT, type Idp } from '../../support/upstreams/idp.ts'
import { callback, createRig, LEG, SECRET } from '../../support/upstreams/rig.ts'

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
  it.each(USER_INFO_ANSWERS)('$name: accepts users whose subject is in the ID token', async ({ arrange, says }) => {
    await arrange(idp)
    const { oidc, log } = createRig(sockets)
    const { subject, claims } = await oidc(idp).finish(LEG, callback(idp))
    expect([subject, claims['email'], claims['name']]).toEqual([SUBJECT, 'one@example.com', undefined])
    const said = log.lines.join('\n')
    expect(said).toContain('user info unavailable, omitted')
    if (says !== undefined) expect(said).toContain(says)
    for (const secret of [MARK, ACCESS, SECRET]) expect(said).not.toContain(secret)
  })

  it.each(USER_INFO_ANSWERS)('$name: ends a login whose subject comes from it', async ({ arrange, code, wait }) => {
    await arrange(idp)
    const login = createRig(sockets).oauth2(idp).finish(LEG, callback(idp))
    await expect(login).rejects.toMatchObject({ code, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) })
  })
})

describe('the time of an ID token', () => {
  const finish = (seconds: number, toleranceSeconds?: number) => {
    idp.claims = { iat: START_MS / 1000 - 600, exp: START_MS / 1000 - seconds }
    return createRig(sockets)
      .oidc(idp, toleranceSeconds === undefined ? {} : { toleranceSeconds })
      .finish(LEG, callback(idp))
  }

  it('is tolerated by five seconds, or by as many as are set', async () => {
    expect((await finish(4)).subject).toBe(SUBJECT)
    await expect(finish(5)).rejects.toMatchObject({ detail: 'ID token: it has expired' })
    expect((await finish(29, 30)).subject).toBe(SUBJECT)
    await expect(finish(30, 30)).rejects.toMatchObject({ detail: 'ID token: it has expired' })
    await expect(finish(0, 0)).rejects.toMatchObject({ detail: 'ID token: it has expired' })
  })

  it.each(['nbf', 'iat'])('may begin 30 s late by %s, or as many as are set', async (claim) => {
    const early = (seconds: number, more: Record<string, unknown> = {}) => {
      const now = START_MS / 1000
      idp.claims = { iat: now - 600, exp: now + 600, [claim]: now + seconds }
      return createRig(sockets).oidc(idp, more).finish(LEG, callback(idp))
    }
    expect((await early(30)).subject).toBe(SUBJECT)
    await expect(early(31)).rejects.toMatchObject({ detail: `ID token: ${claim} is in the future` })
    expect((await early(5, { toleranceSeconds: 5 })).subject).toBe(SUBJECT)
    await expect(early(6, { toleranceSeconds: 5 })).rejects.toMatchObject({
      detail: `ID token: ${claim} is in the future`,
    })
  })
})
