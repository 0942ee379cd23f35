import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseDocument } from 'yaml'
import { parseObjects } from '../../../src/load/index.ts'
import { AMBIENT_SOURCES } from '../../../src/resources/aws/sts-source.ts'
import { signsAsService } from '../../../src/resources/index.ts'

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, '../../..', file), 'utf8')
const INIT = read('config/init/cloudSts.yaml')
const PAGE = read('docs/aws.md')
const ROLE = 'arn:aws:iam::222222222222:role/mcp-tools'

type Spec = Readonly<Record<string, unknown>>
/** Problems of a config with these fields. */
function problemsOf(cloudSts: Spec): readonly string[] {
  const object = {
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'MCPExternalAuthConfig',
    metadata: { name: 'aws', namespace: 'default' },
    spec: { type: 'cloudSts', cloudSts: { region: 'eu-central-1', ...cloudSts } },
  }
  return parseObjects([object]).problems.map((problem) => `${problem.path}  ${problem.message}`)
}
const yaml = (text: string): Spec => parseDocument(text).toJS() as Spec
const withRoles = (spec: Spec): Spec =>
  signsAsService({ ...spec, fallbackRoleArn: ROLE }) || 'roleMappings' in spec
    ? spec
    : { ...spec, fallbackRoleArn: ROLE }

describe('extauth init cloudSts', () => {
  const written = INIT.split('\n').flatMap((line) => /^ {4}# (source: .*)$/.exec(line)?.[1] ?? [])

  it('has a line for each usual set-up, and each line is right', () => {
    const places = written.flatMap((line) => (yaml(line) as { source: { chain?: string[] } }).source.chain ?? [])
    expect(places.toSorted()).toEqual(AMBIENT_SOURCES.filter((place) => place !== 'environment').toSorted())
    expect(written.filter((line) => line.includes('type: role'))).toHaveLength(1)
    expect(written.filter((line) => line.includes('signAs: service'))).toHaveLength(1)
    for (const line of written) expect([line, problemsOf(withRoles(yaml(line)))]).toEqual([line, []])
  })

  it('is right with each of them in place of the comment', () => {
    const [, config = ''] = INIT.split('\n---\n')
    for (const line of written) {
      const changed = config.replace(`# ${line}`, line)
      expect(changed).not.toBe(config)
      const { spec } = parseDocument(changed).toJS() as { spec: { cloudSts: Spec } }
      const { roleMappings, fallbackRoleArn, ...alone } = spec.cloudSts
      const roles = line.includes('signAs: service') ? {} : { roleMappings, fallbackRoleArn }
      expect([line, problemsOf({ ...alone, ...roles })]).toEqual([line, []])
    }
  })

  it('has a mapping for many accounts that is right', () => {
    const mapping = INIT.split('\n')
      .filter((line) => /^ {6}# {1,3}(- matcher|roleArnTemplate|allowedAccounts)/.test(line))
      .map((line) => line.replace('# ', ''))
    expect(mapping).toHaveLength(3)
    expect(problemsOf({ roleMappings: yaml(`roleMappings:\n${mapping.join('\n')}`)['roleMappings'] })).toEqual([])
  })
})

describe('docs/aws.md', () => {
  const blocks = [...PAGE.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text = '']) => text)
  const configs = blocks.filter((text) => text.startsWith('source:'))
  const inline = [...PAGE.matchAll(/`(source:[^`]*)`/g)].map(([, text = '']) => text.replaceAll('\n', ' '))
  const policies = [...PAGE.matchAll(/^```json\n([^]*?)^```$/gm)].map(([, text = '']) => text)

  it.each(configs)('has a config that is right: %s', (text) => {
    expect(problemsOf(withRoles(yaml(text)))).toEqual([])
  })

  it.each(inline)('has a source that is right: %s', (text) => {
    expect(problemsOf(withRoles(yaml(text)))).toEqual([])
  })

  it('has five set-ups, each with the policies that it needs', () => {
    expect(PAGE.match(/^### \d\. /gm)).toHaveLength(5)
    expect(policies.length).toBeGreaterThanOrEqual(9)
    for (const text of policies)
      expect(JSON.parse(text)).toMatchObject({ Version: '2012-10-17', Statement: [{ Effect: 'Allow' }] })
  })
})
