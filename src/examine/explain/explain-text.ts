import type { Decision, MappingStep, SessionName } from '../../obtain/cloud-sts/index.ts'
import type { RuleDecision } from '../../core/index.ts'
import type { ExplainReport } from './explain-report.ts'

const OUTCOMES: Readonly<Record<MappingStep['outcome'], string>> = {
  matched: 'matched',
  not_matched: 'not matched',
  error: 'error',
  limit: 'limit',
  overage: 'left out',
  not_evaluated: 'not evaluated',
}

const CHANGES: Readonly<Record<SessionName['changes'][number], string>> = {
  characters_replaced: 'characters that STS does not take became "-"',
  too_long: 'it is longer than 64',
  too_short: 'it is shorter than 2',
  looks_derived: 'it ends like a derived name',
}

/** Why no role is chosen where none is. */
export const noRoles = (type: string): string =>
  type === 'cloudSts' ? 'signed with the identity of the process' : `type ${type} has no roles`

/** Of the attributes of a session what STS sees. */
export type ComparedAttributes = Pick<Attributes, 'tags' | 'policyArns'> &
  Partial<Pick<Attributes, 'sourceIdentity' | 'policy' | 'externalId'>>
type Attributes = NonNullable<Decision['choice']['attributes']>

/** The report for people. */
export function renderReport(report: ExplainReport): string {
  const { config, caller, decision, headers, cacheKey } = report
  const lines = [
    `config        ${config.name} (${config.type}), ${config.file}:${config.line}, hash ${config.configHash}`,
    `because       ${report.why}`,
    `caller        issuer ${shown(caller.issuer)}, subject ${shown(caller.subject)}, ${caller.format}`,
    'signature     not checked',
    ...report.notes.map((note) => `note          ${note}`),
    ...requestLines(report.request),
    ...sourceLines(report.source),
    ...(decision === undefined ? [`role          none: ${noRoles(config.type)}`] : decisionLines(decision)),
    ...headers.added.map((header) => `adds          ${header}`),
    ...listed('removes', headers.removed),
    ...Object.entries(cacheKey ?? {}).map(([part, digest]) => `cache key     ${part.padEnd(12)}${digest}`),
  ]
  return `${lines.join('\n')}\n`
}

/** What was asked for, and each rule in the order of evaluation. */
function requestLines(request: ExplainReport['request']): string[] {
  if (request === undefined) return []
  const { mcp, rules } = request
  const about = [mcp.name, mcp.uri].filter((text) => text !== '').map((text) => ` ${JSON.stringify(text)}`)
  return [`request       ${mcp.method}${about.join('')}`, ...ruleLines(rules)]
}

/** The decision of rules for people. */
export function ruleLines(rules: RuleDecision | undefined): string[] {
  if (rules === undefined) return ['allowed       yes: no rule applies to it']
  const { allowed, rule, missingScopes, steps } = rules
  const by = rule === undefined ? 'by default' : `by the rule ${JSON.stringify(rule)}`
  const scopes = missingScopes.length === 0 ? '' : `, without the scopes ${missingScopes.join(' ')}`
  return [
    ...steps.map(({ rule: name, effect, outcome, position, reason, missingKey }) => {
      const key = missingKey === undefined ? '' : `: ${JSON.stringify(missingKey)}`
      const place = position === undefined ? '' : ` — line ${position.line}, column ${position.column}: ${reason}${key}`
      return `rule          ${OUTCOMES[outcome].padEnd(14)}${JSON.stringify(name)} → ${effect}${place}`
    }),
    `allowed       ${allowed ? 'yes' : 'no'}, ${by}${scopes}`,
  ]
}

/** Whose identity goes to STS, and the hub before the role of the caller. */
function sourceLines(source: ExplainReport['source']): string[] {
  if (source === undefined) return []
  const { type, chain = [], profile, hub } = source
  if (type === 'callerToken') return [`source        the caller's token`]
  const which = profile === undefined ? '' : `, profile ${JSON.stringify(profile)}`
  return [
    `source        the identity of the process: ${chain.join(', ')}${which}`,
    ...(hub === undefined ? [] : [`hub           ${hub}`]),
  ]
}

/** As many to a line as fit: there are more than a hundred headers that may tell who somebody is. */
function listed(label: string, entries: readonly string[]): string[] {
  const lines: string[] = []
  let line = ''
  for (const entry of entries) {
    const longer = line === '' ? entry : `${line}, ${entry}`
    if (line !== '' && longer.length > WIDTH) {
      lines.push(`${line},`)
      line = entry
    } else line = longer
  }
  if (line !== '') lines.push(line)
  return lines.map((text, index) => `${(index === 0 ? label : '').padEnd(14)}${text}`)
}

/** Of the lists of headers, without what they are called. */
const WIDTH = 100

/** A decision for people: each mapping in the order of evaluation, role, session name and refusal. */
export function decisionLines({ choice, session, sessionNameClaim, refusal }: Decision): string[] {
  const { steps, roleArn, by, reason } = choice
  const role =
    roleArn === undefined
      ? `none${reason === undefined ? '' : `: ${reason}`}`
      : `${roleArn} (by ${by === 'fallback' ? 'fallbackRoleArn' : 'the mapping that matched'})`
  return [
    ...steps.map(
      (step) => `mapping ${String(step.mapping).padEnd(6)}${OUTCOMES[step.outcome].padEnd(14)}${ruleOf(step)}`,
    ),
    `role          ${role}`,
    `session name  ${sessionLine(session, sessionNameClaim)}`,
    ...attributeLines(choice.attributes),
    ...(refusal === undefined ? [] : [`refused       ${refusal}`]),
  ]
}

/** What a session is made of besides role and name, a line for each. */
export function attributeLines(attributes: ComparedAttributes | undefined): string[] {
  if (attributes === undefined) return []
  const { tags, sourceIdentity, policy, policyArns, externalId } = attributes
  return [
    ...tags.map(({ key, value, transitive }) => `tag           ${key} = ${value}${transitive ? ' (transitive)' : ''}`),
    ...(sourceIdentity === undefined ? [] : [`source id     ${sourceIdentity}`]),
    ...(policy === undefined ? [] : [`policy        ${policy}`]),
    ...policyArns.map((arn) => `policy        ${arn}`),
    ...(externalId === undefined ? [] : [`external id   ${externalId}`]),
  ]
}

function ruleOf(step: MappingStep): string {
  const { kind, rule, roleArn, priority, position, reason, missingKey, leftOut } = step
  const order = priority === undefined ? '' : `, priority ${priority}`
  const key = missingKey === undefined ? '' : `: ${JSON.stringify(missingKey)}`
  const place = position === undefined ? '' : ` — line ${position.line}, column ${position.column}: ${reason}${key}`
  const overage =
    leftOut === undefined ? '' : ` — the issuer left the claim ${JSON.stringify(leftOut)} out of the token`
  return `${kind} ${JSON.stringify(rule)} → ${roleArn}${order}${place}${overage}`
}

function sessionLine(session: SessionName | undefined, claim: string): string {
  if (session === undefined) return `none: the claim ${JSON.stringify(claim)} is missing or not a string`
  if (session.changes.length === 0) return `${session.name} (claim ${JSON.stringify(claim)}, unchanged)`
  const why = session.changes.map((change) => CHANGES[change]).join('; ')
  return `${session.name} (claim ${JSON.stringify(claim)}, changed: ${why})`
}

const shown = (text: string): string => (text === '' ? '(none)' : text)
