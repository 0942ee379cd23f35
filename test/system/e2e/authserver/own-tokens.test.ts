import { createPrivateKey } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, SignJWT, type JWTPayload } from 'jose'
import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { INITIALIZE, post } from '../../../support/e2e/lab.ts'
import { Application, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { newSigningKey } from '../../../support/e2e/authserver/fleet.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('an own token without a session is rejected, on routes with a static credential too', async () => {
  const key = newSigningKey()
  const world = await openWorld(sockets, {
    spec: { signingKeySecretRefs: [{ name: 'as', key: 'signing' }] },
    files: () => ({ 'secrets/as/signing': key }),
  })
  const application = new Application()
  await (await logIn(world, `${world.url}/mcp`, application, LEGACY)).close()
  const token = application.kept?.access_token ?? ''
  const { tsid, ...said } = decodeJwt(token)
  // Of a whole second after the start: what is older needs a session that is kept.
  const claims = { ...said, iat: (said.iat ?? 0) + 1 }
  const { alg = '', ...header } = decodeProtectedHeader(token)
  const status = async (payload: JWTPayload) => {
    const signed = await new SignJWT(payload).setProtectedHeader({ alg, ...header }).sign(createPrivateKey(key))
    return (await post(`${world.url}/mcp`, INITIALIZE, { authorization: `Bearer ${signed}` })).status
  }
  expect(await status({ ...claims, tsid })).toBe(200)
  expect(await status(claims)).toBe(401)
  expect(await status({ ...claims, tsid: 1 })).toBe(401)
  expect(await status({ ...claims, tsid: [tsid] })).toBe(401)
})
