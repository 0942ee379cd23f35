import { AssumeRoleWithWebIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { afterEach, describe, expect, it } from 'vitest'
import { OutboundError } from '../../../src/core/index.ts'
import { createOutbound, createSmithyHandler } from '../../../src/net/index.ts'
import { recording } from '../../support/recording.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const outbound = () => sockets.closing(createOutbound({ name: 'service', clock: Date, deadlineMs: 500 }))

describe('the handler for the STS client', () => {
  const sts = (endpoint: string) =>
    new STSClient({
      region: 'eu-west-1',
      endpoint,
      credentials: { accessKeyId: '', secretAccessKey: '' },
      maxAttempts: 1,
      requestHandler: createSmithyHandler(outbound()),
    })
  const command = () =>
    new AssumeRoleWithWebIdentityCommand({
      RoleArn: 'arn:aws:iam::123456789012:role/a',
      RoleSessionName: 's',
      WebIdentityToken: 't',
    })

  it('carries requests and answers', async () => {
    const body = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
      <Credentials><AccessKeyId>AK</AccessKeyId><SecretAccessKey>SK</SecretAccessKey><SessionToken>ST</SessionToken><Expiration>2026-11-21T10:00:00Z</Expiration></Credentials>
      </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
    const { url, seen } = await recording(sockets, 200, 'text/xml', body)
    const answer = await sts(url).send(command())
    expect(answer.Credentials).toMatchObject({ AccessKeyId: 'AK', SessionToken: 'ST' })
    expect(seen[0]?.line).toBe('POST /')
    expect(seen[0]?.body).toContain('Action=AssumeRoleWithWebIdentity')
    expect(seen[0]?.headers['authorization']).toBeUndefined()
  })

  it('lets the service name its errors', async () => {
    const body =
      '<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>'
    const { url } = await recording(sockets, 403, 'text/xml', body)
    await expect(sts(url).send(command())).rejects.toMatchObject({ name: 'AccessDenied' })
  })

  it('throws what the outbound throws', async () => {
    const url = await sockets.tcp(() => undefined)
    const error: unknown = await sts(url)
      .send(command())
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OutboundError)
    expect(error).toMatchObject({ kind: 'timeout' })
  })

  it('keeps the path, the query and the port of the endpoint', async () => {
    const { url, seen } = await recording(sockets, 200, 'text/plain', 'ok')
    const { hostname, port } = new URL(url)
    const { response } = await createSmithyHandler(outbound()).handle({
      method: 'GET',
      protocol: 'http:',
      hostname,
      port: Number(port),
      path: '/a%2Fb',
      query: { one: 'a b', many: ['1', '2'], flag: null },
      headers: { 'x-one': '1' },
    })
    expect([response.statusCode, Buffer.from(response.body).toString()]).toEqual([200, 'ok'])
    expect(seen[0]?.line).toBe('GET /a%2Fb?one=a%20b&many=1&many=2&flag')
  })
})
