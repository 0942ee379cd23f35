import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { awsHostMismatches } from '../../../../src/resources/aws/aws-hosts.ts'
import { resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route } from '../../../support/load/documents/build.ts'

const { hosts } = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../vectors/aws-hosts.json'), 'utf8'),
) as {
  hosts: [host: string, service: string][]
}
const services = [...new Set(hosts.map(([, service]) => service))]
const regionOf = (host: string) => /(?:us|cn|eu)-[a-z]+-\d/.exec(host)?.[0] ?? 'us-east-1'

describe('the service and region that requests are signed for', () => {
  it.each(hosts)('%s is known to be signed for %s', (host, service) => {
    expect(awsHostMismatches(host, { service, region: regionOf(host) })).toEqual([])
  })

  it('are distinguished from nearly all others', () => {
    const others = hosts.flatMap(([host, own]) =>
      services.filter((service) => service !== own).map((service) => ({ host, service, region: regionOf(host) })),
    )
    const unnoticed = others.filter((one) => awsHostMismatches(one.host, one).length === 0)
    expect(unnoticed.length / others.length).toBeLessThan(0.01)
  })

  it.each([
    ['abc123.execute-api.eu-west-1.amazonaws.com', 'execute-api', 'eu-west-1'],
    ['abc123-vpce-0a1b.execute-api.eu-west-1.vpce.amazonaws.com', 'execute-api', 'eu-west-1'],
    ['abcdef.lambda-url.eu-west-1.on.aws', 'lambda', 'eu-west-1'],
    ['bedrock-agentcore.eu-west-1.amazonaws.com', 'bedrock-agentcore', 'eu-west-1'],
    ['gw-1.gateway.bedrock-agentcore.eu-west-1.amazonaws.com', 'bedrock-agentcore', 'eu-west-1'],
    ['bedrock-runtime.eu-west-1.amazonaws.com', 'bedrock', 'eu-west-1'],
    ['aws-mcp.us-east-1.api.aws', 'aws-mcp', 'us-east-1'],
    ['my-bucket.s3.eu-west-1.amazonaws.com', 's3', 'eu-west-1'],
    ['s3.dualstack.eu-west-1.amazonaws.com', 's3', 'eu-west-1'],
    ['s3-fips.us-east-1.amazonaws.com', 's3', 'us-east-1'],
    ['b--usw2-az1--x-s3.s3express-usw2-az1.us-west-2.amazonaws.com', 's3express', 'us-west-2'],
    ['svc-1.7d67968.vpc-lattice-svcs.eu-west-1.on.aws', 'vpc-lattice-svcs', 'eu-west-1'],
    ['search-x-abc.eu-west-1.es.amazonaws.com', 'es', 'eu-west-1'],
    ['abc.eu-west-1.aoss.amazonaws.com', 'aoss', 'eu-west-1'],
    ['abc.appsync-api.eu-west-1.amazonaws.com', 'appsync', 'eu-west-1'],
    ['db-1.cluster-abc.eu-west-1.neptune.amazonaws.com', 'neptune-db', 'eu-west-1'],
    ['iam.amazonaws.com', 'iam', 'eu-west-1'],
    ['DYNAMODB.eu-west-1.amazonaws.com.', 'dynamodb', 'eu-west-1'],
    ['lb-1.eu-west-1.elb.amazonaws.com', 'cloud-mcp', 'us-east-1'],
    ['ec2-1-2-3-4.compute-1.amazonaws.com', 'cloud-mcp', 'us-east-1'],
    ['vpce-1-2.vpce-svc-0a1b.eu-west-1.vpce.amazonaws.com', 'cloud-mcp', 'us-east-1'],
    ['mcp.example.com', 'cloud-mcp', 'us-east-1'],
    ['amazonaws.com.example.com', 'cloud-mcp', 'us-east-1'],
    ['127.0.0.1', 'cloud-mcp', 'us-east-1'],
  ])('of %s may be %s in %s', (host, service, region) => {
    expect(awsHostMismatches(host, { service, region })).toEqual([])
  })

  it.each([
    ['bedrock-agentcore.eu-west-1.amazonaws.com', 'cloud-mcp', 'eu-west-1', 'the service "cloud-mcp"'],
    ['bedrock-agentcore.eu-west-1.amazonaws.com', 'aws-mcp', 'eu-west-1', 'the service "aws-mcp"'],
    ['abc.execute-api.eu-west-1.amazonaws.com', 'lambda', 'eu-west-1', 'the service "lambda"'],
    ['abc.lambda-url.eu-west-1.on.aws', 'execute-api', 'eu-west-1', 'the service "execute-api"'],
    ['aws-mcp.us-east-1.api.aws', 'cloud-mcp', 'us-east-1', 'the service "cloud-mcp"'],
    [
      'aws-mcp.us-east-1.api.aws',
      'aws-mcp',
      'eu-west-1',
      'the region "eu-west-1", and this AWS host is in "us-east-1"',
    ],
    ['states.cn-north-1.amazonaws.com.cn', 'states', 'cn-northwest-1', 'in "cn-north-1"'],
    ['s3.eu-west-1.amazonaws.com', 'eu', 'eu-west-1', 'the service "eu"'],
  ])('of %s had better not be %s in %s', (host, service, region, message) => {
    expect(awsHostMismatches(host, { service, region })).toEqual([expect.stringContaining(message)])
  })
})

describe('a route that signs for another service than its host', () => {
  const warningsFor = (target: string, service: string): readonly string[] => {
    const cloudSts = { region: 'eu-west-1', service, fallbackRoleArn: 'arn:aws:iam::123456789012:role/reader' }
    const loaded = load(
      externalAuth({ type: 'cloudSts', cloudSts }, 'role'),
      proxy({ auth: OAUTH, routes: [route({ target, externalAuthConfigRef: { name: 'role' } })] }),
    )
    return resolveProxy(loaded, {}).config?.warnings ?? []
  }

  it('is warned of at its target, with the config that says so', () => {
    const warnings = warningsFor('https://bedrock-agentcore.eu-west-1.amazonaws.com/x', 'cloud-mcp')
    expect(warnings).toEqual([
      expect.stringMatching(
        /target {2}requests are signed for the service "cloud-mcp", which is not in .*see "role" \(route "a"\)$/,
      ),
    ])
    expect(warningsFor('https://bedrock-agentcore.eu-west-1.amazonaws.com/x', 'bedrock-agentcore')).toEqual([])
  })
})
