import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import { loadProxyConfig } from '../../../src/compose/load-config.ts'
import { externalAuth, OAUTH, proxy, route } from '../../support/load/documents/build.ts'
import { ioOf } from '../../support/compose/io.ts'

let directory: string
beforeEach(() => void (directory = mkdtempSync(path.join(os.tmpdir(), 'extauth-warnings-'))))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const cloudSts = { region: 'eu-west-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/reader' }
const bearerToken = { tokenSecretRef: { name: 'a', key: 'b' } }

it.each<[string, object, object, string]>([
  [
    'an AWS host that is signed for another service',
    { type: 'cloudSts', cloudSts },
    { target: 'https://bedrock-agentcore.eu-west-1.amazonaws.com/mcp' },
    'the service "cloud-mcp", which is not in the name of this AWS host',
  ],
  [
    'an AWS host that is signed for another region',
    { type: 'cloudSts', cloudSts: { ...cloudSts, service: 'bedrock-agentcore' } },
    { target: 'https://bedrock-agentcore.us-east-1.amazonaws.com/mcp' },
    'the region "eu-west-1", and this AWS host is in "us-east-1"',
  ],
  [
    'a list of claims that is compared with a text',
    {
      type: 'cloudSts',
      cloudSts: {
        region: 'eu-west-1',
        roleMappings: [{ matcher: 'claims.groups == "dev"', roleArn: cloudSts.fallbackRoleArn, priority: 1 }],
      },
    },
    {},
    'column 15 of the expression: "claims.groups" is a list in most tokens',
  ],
  [
    'a credential over plain http',
    { type: 'bearerToken', bearerToken },
    { target: 'http://backend.example.com/mcp' },
    'the credential goes to this backend over plain http',
  ],
  [
    'a backend that anybody can pose as',
    { type: 'bearerToken', bearerToken },
    { targetTls: { insecureSkipVerify: true } },
    'any server can pose as this backend',
  ],
  [
    'a resource whose path is another',
    { type: 'bearerToken', bearerToken },
    { resourceUrl: 'http://127.0.0.1:8080/other' },
    'its path is "/other", and the route is at "/a"',
  ],
  [
    'a resource at another port of this machine',
    { type: 'bearerToken', bearerToken },
    { resourceUrl: 'http://127.0.0.1:9999/a' },
    'its port is 9999, and the proxy listens on 8080',
  ],
])('validate warns of %s, as the proxy does when it starts', async (_what, spec, routeFields, warning) => {
  const documents = [externalAuth(spec, 'token'), proxy({ auth: OAUTH, routes: [route(routeFields)] })]
  for (const [index, document] of documents.entries())
    writeFileSync(path.join(directory, `${index}.json`), JSON.stringify(document))
  const { warnings } = await loadProxyConfig({ configPaths: [directory] })
  expect(warnings.join('\n')).toContain(warning)
  const { io, out } = ioOf()
  expect(await main(['validate', '--no-files', directory], io)).toBe(0)
  expect(out.stdout).toContain(`warning: `)
  expect(out.stdout).toContain(warning)
})
