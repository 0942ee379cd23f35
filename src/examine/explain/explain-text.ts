import type { Decision, MappingStep, SessionName } from '../../obtain/cloud-sts/index.ts'
import type { RuleDecision } from '../../core/index.ts'
import { connectionLines } from './explained-connection.ts'
import type { ExplainedEvent, ExplainReport } from './explain-report.ts'

const OUTCOMES: Readonly<Record<MappingStep['outcome'], string>> = {
  matched: 'matched',
  not_matched: 'not matched',
  error: 'error',
  limit: 'limit',
  overage: 'omitted',
  not_evaluated: 'not evaluated',
}

const CHANGES: Readonly<Record<SessionName['changes'][number], string>> = {
  characters_replaced: 'characters invalid for STS replaced by "-"',
  too_long: 'longer than 64',
  too_short: 'shorter than 2',
  looks_derived: 'ends like a derived name',
}

/** Why a type chooses no role. */
export const noRoles = (type: string): string =>
  type === 'cloudSts' ? 'signed with the identity of the process' : `type ${type} has no roles`

/** The session attributes that STS receives. */
export type ComparedAttributes = Pick<Attributes, 'tags' | 'policyArns'> &
  Partial<Pick<Attributes, 'sourceIdentity' | 'policy' | 'externalId'>>
type Attributes = NonNullable<Decision['choice']['attributes']>

/** Lines printed without `verbose`. */
const BRIEF = 8

/** Renders the report as text: the lines that explain the result first, the rest only with `verbose`. */
export function renderReport(report: ExplainReport, { verbose }: { readonly verbose: boolean }): string {
  const all = reportLines(report)
  const lines = verbose ? all : all.slice(0, BRIEF)
  const more = all.length - lines.length
  return `${lines.join('\n')}\n${more === 0 ? '' : `${more} more lines with -v\n`}`
}

/** All lines, most important first: whether the request is allowed, the role, what decided, config and caller. */
function reportLines(report: ExplainReport): string[] {
  const { config, why, caller, notes, request, audit, source, decision, headers, cacheKey } = report
  const connection = connectionLines(report.connection)
  const mappings = decisiveOf(decision?.choice.steps ?? [])
  const rules = decisiveOf(request?.rules?.steps ?? [])
  return [
    ...(request === undefined ? [] : [allowedLine(request.rules), requestLine(request)]),
    ...rules.first.map(ruleStepLine),
    ...connection.first,
    ...(decision === undefined
      ? connection.first.length > 0
        ? []
        : [`role          none: ${noRoles(config.type)}`]
      : [roleLine(decision)]),
    ...refusalLines(decision),
    ...notes.map((note) => `note          ${note}`),
    ...mappings.first.map(stepLine),
    ...(decision === undefined ? [] : [sessionLine(decision)]),
    `config        ${config.name} (${config.type}), ${config.file}:${config.line}, hash ${config.configHash}`,
    `because       ${why}`,
    `caller        issuer ${orNone(caller.issuer)}, subject ${orNone(caller.subject)}, ${caller.format}`,
    ...(audit === undefined ? [] : [auditLine(audit)]),
    ...headers.added.map((header) => `adds          ${header}`),
    'signature     not verified',
    ...connection.rest,
    ...sourceLines(source),
    ...rules.rest.map(ruleStepLine),
    ...mappings.rest.map(stepLine),
    ...attributeLines(decision?.choice.attributes),
    ...listed('removes', headers.removed),
    ...Object.entries(cacheKey ?? {}).map(([part, digest]) => `cache key     ${part.padEnd(12)}${digest}`),
  ]
}

/** The step that matched and the others; if none matched, all explain the result. */
function decisiveOf<T extends Pick<MappingStep, 'outcome'>>(
  steps: readonly T[],
): Record<'first' | 'rest', readonly T[]> {
  const matched = steps.filter(({ outcome }) => outcome === 'matched')
  if (matched.length === 0) return { first: steps, rest: [] }
  return { first: matched, rest: steps.filter((step) => !matched.includes(step)) }
}

function auditLine({ type, isRecorded, file, format }: ExplainedEvent): string {
  return isRecorded
    ? `audit         ${type} to ${file} (${format})`
    : `audit         none: ${type} is not among the recorded events`
}

function requestLine({ mcp }: NonNullable<ExplainReport['request']>): string {
  const about = [mcp.name, mcp.uri].filter((text) => text !== '').map((text) => ` ${JSON.stringify(text)}`)
  return `request       ${mcp.method}${about.join('')}`
}

/** Renders a decision of rules: rules in the order of evaluation, then the result. */
export const ruleLines = (rules: RuleDecision | undefined): string[] => [
  ...(rules?.steps ?? []).map(ruleStepLine),
  allowedLine(rules),
]

function allowedLine(rules: RuleDecision | undefined): string {
  if (rules === undefined) return 'allowed       yes: no rule applies to it'
  const { allowed, rule, missingScopes } = rules
  const by = rule === undefined ? 'by default' : `by the rule ${JSON.stringify(rule)}`
  const scopes = missingScopes.length === 0 ? '' : `, without the scopes ${missingScopes.join(' ')}`
  return `allowed       ${allowed ? 'yes' : 'no'}, ${by}${scopes}`
}

function ruleStepLine({ rule, effect, outcome, position, reason, missingKey }: RuleDecision['steps'][number]): string {
  const key = missingKey === undefined ? '' : `: ${JSON.stringify(missingKey)}`
  const location = position === undefined ? '' : ` — line ${position.line}, column ${position.column}: ${reason}${key}`
  return `rule          ${OUTCOMES[outcome].padEnd(14)}${JSON.stringify(rule)} → ${effect}${location}`
}

/** The identity for STS, and the hub. */
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

/** Wraps a long list: more than a hundred headers may identify a caller. */
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

/** Width of wrapped lists, without the label. */
const WIDTH = 100

/** Renders a decision: mappings in the order of evaluation, role, session name, attributes and refusal. */
export const decisionLines = (decision: Decision): string[] => [
  ...decision.choice.steps.map(stepLine),
  roleLine(decision),
  sessionLine(decision),
  ...attributeLines(decision.choice.attributes),
  ...refusalLines(decision),
]

function roleLine({ choice: { roleArn, by, reason } }: Decision): string {
  if (roleArn === undefined) return `role          none${reason === undefined ? '' : `: ${reason}`}`
  return `role          ${roleArn} (by ${by === 'fallback' ? 'fallbackRoleArn' : 'the mapping that matched'})`
}

const refusalLines = (decision: Decision | undefined): string[] =>
  decision?.refusal === undefined ? [] : [`refused       ${decision.refusal}`]

const stepLine = (step: MappingStep): string =>
  `mapping ${String(step.mapping).padEnd(6)}${OUTCOMES[step.outcome].padEnd(14)}${ruleOf(step)}`

/** Session attributes besides role and name, one line each. */
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
    leftOut === undefined ? '' : ` — the issuer omitted the claim ${JSON.stringify(leftOut)} from the token`
  return `${kind} ${JSON.stringify(rule)} → ${roleArn}${order}${place}${overage}`
}

function sessionLine({ session, sessionNameClaim }: Decision): string {
  const claim = JSON.stringify(sessionNameClaim)
  if (session === undefined) return `session name  none: the claim ${claim} is missing or not a string`
  if (session.changes.length === 0) return `session name  ${session.name} (claim ${claim}, unchanged)`
  const why = session.changes.map((change) => CHANGES[change]).join('; ')
  return `session name  ${session.name} (claim ${claim}, changed: ${why})`
}

const orNone = (text: string): string => (text === '' ? '(none)' : text)
