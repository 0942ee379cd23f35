import { Ajv2020 } from 'ajv/dist/2020.js'
import { SaxesParser } from 'saxes'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jsonSchema } from '../../../../src/load/publish/index.ts'
import { loadFiles } from '../../../../src/load/index.ts'
import { cases, CONFIG, extauth, folder, type Folder, ROLE } from '../../../support/examine/role-tests/files.ts'

const LIST = [
  { name: 'right', route: 'aws', claims: { sub: 'ada', groups: ['readers'] }, expect: { role: ROLE('reader') } },
  {
    name: 'wrong <&"\u0001]]>',
    route: 'aws',
    claims: { sub: 'ada', groups: ['readers'] },
    expect: { role: 'a<b>&"c' },
  },
]

let files: Folder
let argv: string[]
beforeAll(async () => {
  files = await folder({ 'proxy.yaml': CONFIG, 'cases.json': cases(...LIST) })
  argv = ['test', `${files.directory}/cases.json`, '--config', `${files.directory}/proxy.yaml`]
})
afterAll(() => files.remove())

interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  text: string
}

/** The elements of a document, by a parser that takes well-formed XML 1.0 only. */
function elementsOf(xml: string): Element[] {
  const parser = new SaxesParser()
  const elements: Element[] = []
  const open: Element[] = []
  parser.on('error', (error) => {
    throw error
  })
  parser.on('opentag', ({ name, attributes }) => {
    const element = { name, attributes: { ...attributes } as Record<string, string>, text: '' }
    elements.push(element)
    open.push(element)
  })
  parser.on('text', (text) => {
    const inner = open.at(-1)
    if (inner !== undefined) inner.text += text
  })
  parser.on('closetag', () => void open.pop())
  parser.write(xml).close()
  return elements
}
const ofName = (elements: readonly Element[], name: string) => elements.filter((element) => element.name === name)

describe('JUnit XML', () => {
  it('is well-formed whatever names and values are, with one case per case and the failure of what failed', async () => {
    const { code, out } = await extauth([...argv, '--output', 'junit'])
    expect(code).toBe(1)
    const elements = elementsOf(out)
    expect(elements[0]).toMatchObject({ name: 'testsuites', attributes: { tests: '2', failures: '1', errors: '0' } })
    expect(ofName(elements, 'testsuite').map(({ attributes }) => attributes)).toMatchObject([
      { name: 'roles', file: `${files.directory}/cases.json`, tests: '2', failures: '1', skipped: '0' },
    ])
    const [right, wrong] = ofName(elements, 'testcase')
    expect(right?.attributes).toMatchObject({ name: 'right', classname: 'roles', line: '1' })
    expect(wrong?.attributes['name']).toBe('wrong <&"\uFFFD]]>')
    const failures = ofName(elements, 'failure')
    expect(failures.map(({ attributes }) => attributes['message'])).toEqual([
      `expected role a<b>&"c, got ${ROLE('reader')}`,
    ])
    expect(failures[0]?.text).toMatch(/mapping 2 .*\n.*mapping 3 .*\n.*mapping 1 +matched/)
  })

  it('goes to a file beside the text, as a whole', async () => {
    const { code, out } = await extauth([...argv, '--junit', `${files.directory}/junit.xml`])
    expect(code).toBe(1)
    expect(out).toContain('1 passed, 1 failed')
    expect(ofName(elementsOf(await files.read('junit.xml')), 'testcase')).toHaveLength(2)
    expect(await extauth([...argv, '--junit', `${files.directory}/nowhere/junit.xml`])).toMatchObject({
      code: 2,
      err: `extauth test: ${files.directory}/nowhere/junit.xml cannot be written (ENOENT)\n`,
    })
  })

  it('has a case for what must be reached', async () => {
    const elements = elementsOf((await extauth([...argv, '--output', 'junit', '--require-reached'])).out)
    expect(elements[0]?.attributes).toMatchObject({ tests: '3', failures: '2' })
    expect(ofName(elements, 'failure')[1]?.attributes['message']).toBe(
      '2 of 3 mappings, fallbacks and rules are not reached',
    )
  })
})

describe('JSON', () => {
  it('has each case with its decision, and what is not reached', async () => {
    const report = JSON.parse((await extauth([...argv, '--output', 'json'])).out) as Record<string, unknown>
    expect(report).toMatchObject({
      passed: 1,
      failed: 1,
      reached: 1,
      cases: [
        {
          name: 'right',
          suite: 'roles',
          route: 'aws',
          passed: true,
          decision: { choice: { roleArn: ROLE('reader') } },
        },
        { passed: false, mismatches: [{ what: 'role', expected: 'a<b>&"c', actual: ROLE('reader') }] },
      ],
      unreached: [{ config: 'default/aws', mapping: 2, evaluated: 2 }, { mapping: 3 }],
    })
  })

  it('of other outputs says which there are', async () => {
    expect(await extauth([...argv, '--output', 'tap'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--output must be'),
    })
  })
})

describe('the kind RoleTest', () => {
  it('is loaded beside the configuration by every command, and validated', async () => {
    const broken = await folder({ 'proxy.yaml': CONFIG, 'cases.json': cases({ route: 'aws', claims: {}, expect: {} }) })
    const { code, out } = await extauth(['validate', broken.directory])
    await broken.remove()
    expect(code).toBe(1)
    expect(out).toMatch(/cases\.json:1:\d+ {2}RoleTest\/roles {2}spec\.cases\[0\]\.expect {2}expected at least one of/)
    expect((await loadFiles([files.directory])).roleTests).toHaveLength(1)
  })

  it('has a JSON Schema that takes and refuses the same', () => {
    const validate = new Ajv2020({ strict: false }).compile(jsonSchema('RoleTest'))
    const document = (each: object): unknown => JSON.parse(cases(each))
    expect(validate(document(LIST[0] ?? {}))).toBe(true)
    const { route: _, ...without } = { route: '', ...LIST[0] }
    for (const wrong of [
      without,
      { ...LIST[0], config: 'aws' },
      { ...LIST[0], token: 'file' },
      { ...LIST[0], expect: {} },
      { ...LIST[0], expect: { role: 'x', reason: 'no_role' } },
      { ...LIST[0], expects: {} },
    ])
      expect([wrong, validate(document(wrong))]).toEqual([wrong, false])
  })
})
