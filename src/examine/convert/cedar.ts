import { Document } from 'yaml'
import { WRITTEN_YAML } from '../../load/index.ts'
import type { Authorization, AuthorizationRule } from '../../resources/index.ts'

/** A policy that cannot be expressed exactly as rules. */
export class CedarError extends Error {
  override readonly name = 'CedarError'
  readonly line: number
  readonly column: number
  constructor({ line, column }: Position, reason: string) {
    super(reason)
    this.line = line
    this.column = column
  }
}

interface Position {
  readonly line: number
  readonly column: number
}

/** A condition on one claim. */
interface Term {
  readonly claim: string
  readonly is: 'equal' | 'contains' | 'oneOf'
  readonly values: readonly string[]
}

type Target = 'tools' | 'prompts' | 'resources'

interface Policy {
  readonly effect: 'permit' | 'forbid'
  /** Patterns of the requests in its scope; empty for a policy that matches no request. */
  readonly scope: Partial<Record<Target, string[]>>
  readonly terms: readonly Term[]
}

/** The rules of a set of policies, and what is worth a comment. */
export interface ConvertedPolicies {
  readonly authorization: Authorization
  readonly notes: readonly string[]
}

const ACTIONS: Readonly<Record<string, Target | 'list'>> = {
  call_tool: 'tools',
  get_prompt: 'prompts',
  read_resource: 'resources',
  list_tools: 'list',
  list_prompts: 'list',
  list_resources: 'list',
}
const RESOURCES: Readonly<Record<string, Target>> = { Tool: 'tools', Prompt: 'prompts', Resource: 'resources' }
const TARGETS: readonly Target[] = ['tools', 'prompts', 'resources']

const MAX_POLICIES = 200
const MAX_TERMS = 50

/**
 * Converts Cedar policies as ToolHive evaluates them: a request is denied if a policy in whose scope it is cannot be
 * evaluated, else if a `forbid` matches, else allowed if a `permit` matches. Throws `CedarError` for everything outside
 * the subset.
 */
export function convertCedar(text: string): ConvertedPolicies {
  const policies = new Parser(text).policies()
  const notes: string[] = []
  const errors = new Map<string, AuthorizationRule>()
  const forbidden: AuthorizationRule[] = []
  const permitted: AuthorizationRule[] = []
  for (const [index, { effect, scope, terms }] of policies.entries()) {
    const name = `policy-${index + 1}`
    if (Object.keys(scope).length === 0) {
      notes.push(`${name} matches no request: lists are filtered by what the caller may use`)
      continue
    }
    const when = terms.length === 0 ? {} : { when: terms.map(celOf).join(' && ') }
    if (effect === 'forbid') forbidden.push({ name, ...scope, ...when, requireScopes: [], effect: 'deny' })
    else permitted.push({ name, ...scope, ...when, requireScopes: [], effect: 'allow' })
    if (terms.length === 0) continue
    const isUnusable = unusableOf(terms)
    const earlier = errors.get(isUnusable)
    const merged = earlier === undefined ? scope : union(earlier, scope)
    const errorName = earlier?.name ?? `${name}-unusable-claim`
    errors.set(isUnusable, { name: errorName, ...merged, when: isUnusable, requireScopes: [], effect: 'deny' })
  }
  const everything = { tools: ['*'], prompts: ['*'], resources: ['*'] }
  return {
    notes,
    authorization: {
      default: 'deny',
      rules: [
        { name: 'no-subject', ...everything, when: 'claims.sub == ""', requireScopes: [], effect: 'deny' },
        ...errors.values(),
        ...forbidden,
        ...permitted,
        { name: 'notifications', methods: ['notifications/*', 'tasks/list'], requireScopes: [], effect: 'allow' },
      ],
    },
  }
}

/** The rules as YAML, for a route. Throws `CedarError`. */
export function cedarToYaml(text: string): string {
  const { authorization, notes } = convertCedar(text)
  const rules = authorization.rules.map(({ requireScopes, ...rule }) =>
    requireScopes.length === 0 ? rule : { ...rule, requireScopes },
  )
  const document = new Document({ authorization: { ...authorization, rules } }, WRITTEN_YAML)
  return `${notes.map((note) => `# ${note}\n`).join('')}${document.toString({ lineWidth: WRITTEN_YAML.lineWidth })}`
}

function union(one: AuthorizationRule, other: Policy['scope']): Policy['scope'] {
  const scope: Policy['scope'] = {}
  for (const target of TARGETS) {
    const all = [...new Set([...(one[target] ?? []), ...(other[target] ?? [])])]
    if (all.length > 0) scope[target] = all.includes('*') ? ['*'] : all
  }
  return scope
}

/** The condition in CEL. It is exact where the claim is usable; `unusableOf` denies other requests before it. */
function celOf({ claim, is, values }: Term): string {
  const [first = ''] = values
  if (is === 'equal') return `${claimOf(claim)} == ${JSON.stringify(first)}`
  if (is === 'contains') return `${JSON.stringify(first)} in ${claimOf(claim)}`
  return `${claimOf(claim)} in [${values.map((value) => JSON.stringify(value)).join(', ')}]`
}

/**
 * Whether an evaluation from left to right reaches a claim that Cedar cannot use. A missing claim is an error of the
 * expression, which denies.
 */
function unusableOf(terms: readonly Term[]): string {
  const parts = terms.map(({ claim, is }, index) => {
    const unusable = is === 'contains' ? `type(${claimOf(claim)}) != list` : `${claimOf(claim)} == null`
    return [...terms.slice(0, index).map(celOf), unusable].join(' && ')
  })
  return [...new Set(parts)].join(' || ')
}

const RESERVED = new Set(
  'as break const continue else false for function if import in let loop null package namespace return true var void while'.split(
    ' ',
  ),
)

const claimOf = (claim: string): string =>
  /^[A-Za-z_]\w*$/.test(claim) && !RESERVED.has(claim) ? `claims.${claim}` : `claims[${JSON.stringify(claim)}]`

interface Token extends Position {
  readonly kind: 'word' | 'string' | 'sign' | 'end'
  /** Of a string, its value. */
  readonly text: string
}

const TOKEN =
  /(?<space>(?:\s|\/\/[^\n]*)+)|(?<word>[A-Za-z_]\w*)|"(?<string>(?:[^"\\\p{Cc}]|\\["\\])*)"|(?<sign>==|!=|<=|>=|&&|\|\||::|[^\s])/uy

/** Throws at a string with a control character, or an escape other than `\"` and `\\`. */
function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  const scan = new RegExp(TOKEN)
  let line = 1
  let lineStart = 0
  while (scan.lastIndex < text.length) {
    const start = scan.lastIndex
    const position = { line, column: start - lineStart + 1 }
    const groups = scan.exec(text)?.groups ?? {}
    const { space, word, string, sign } = groups
    if (space !== undefined) {
      for (let at = text.indexOf('\n', start); at !== -1 && at < scan.lastIndex; at = text.indexOf('\n', at + 1)) {
        line += 1
        lineStart = at + 1
      }
    } else if (word !== undefined) tokens.push({ ...position, kind: 'word', text: word })
    else if (string !== undefined)
      tokens.push({ ...position, kind: 'string', text: string.replace(/\\(["\\])/g, '$1') })
    else if (sign === '"')
      throw new CedarError(
        position,
        'the string does not end, or has a control character or another escape than \\" and \\\\',
      )
    else tokens.push({ ...position, kind: 'sign', text: sign ?? '' })
  }
  tokens.push({ line, column: text.length - lineStart + 1, kind: 'end', text: 'the end of the policies' })
  return tokens
}

/** Reasons for what policies may have and rules cannot express exactly. */
const REASONS: Readonly<Record<string, string>> = {
  unless: '"unless" is not converted; write the opposite condition with "when"',
  like: '"like" is not converted: its patterns differ from those of rules',
  has: '"has" is not converted; without it, a missing claim denies',
  in: '"in" is not converted: it depends on entities and their hierarchy',
  is: '"is" is not converted',
  if: '"if" is not converted',
  '?': 'templates are not converted',
  '@': 'annotations are not converted; remove them',
  '||': '"||" is not converted; write two policies',
  '!': 'negations are not converted',
  '!=': '"!=" is not converted',
  '(': 'parentheses are not converted here',
  context: '"context" is not converted; conditions may use principal.claim_…',
  resource: 'attributes of the resource are not converted; conditions may use principal.claim_…',
  action: 'conditions on the action are not converted; conditions may use principal.claim_…',
}

/** Recursive descent over the subset. */
class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#tokens = tokensOf(text)
  }

  policies(): readonly Policy[] {
    const policies: Policy[] = []
    while (this.#next.kind !== 'end') {
      if (policies.length === MAX_POLICIES) throw this.#error(`there are more than ${MAX_POLICIES} policies`)
      policies.push(this.#policy())
    }
    if (policies.length === 0) throw this.#error('there is no policy')
    return policies
  }

  #policy(): Policy {
    const effect = this.#next.text
    if (this.#next.kind !== 'word' || (effect !== 'permit' && effect !== 'forbid'))
      throw this.#unexpected('"permit" or "forbid"')
    this.#at += 1
    this.#sign('(')
    this.#word('principal')
    this.#sign(',', 'principals are not restricted by rules; use a condition on a claim')
    const action = this.#action()
    this.#sign(',')
    const resource = this.#resource()
    this.#sign(')')
    const terms = this.#isWord('when') ? this.#when() : []
    this.#sign(';')
    const targets = TARGETS.filter((target) => (action ?? target) === target && (resource?.target ?? target) === target)
    return { effect, terms, scope: Object.fromEntries(targets.map((target) => [target, [resource?.name ?? '*']])) }
  }

  #action(): Target | 'list' | undefined {
    this.#word('action')
    if (!this.#takes('==')) return undefined
    this.#word('Action')
    this.#sign('::')
    const { text, ...at } = this.#string('the name of an action')
    const action = Object.hasOwn(ACTIONS, text) ? ACTIONS[text] : undefined
    if (action === undefined)
      throw new CedarError(
        at,
        `unknown action ${JSON.stringify(text)}; expected one of ${Object.keys(ACTIONS).join(', ')}`,
      )
    return action
  }

  #resource(): { readonly target: Target; readonly name: string } | undefined {
    this.#word('resource')
    if (!this.#takes('==')) return undefined
    const type = this.#next
    const target = Object.hasOwn(RESOURCES, type.text) ? RESOURCES[type.text] : undefined
    if (type.kind !== 'word' || target === undefined) throw this.#unexpected(Object.keys(RESOURCES).join(', '))
    this.#at += 1
    this.#sign('::')
    const { text: name, ...at } = this.#string('a name')
    if (target === 'resources')
      throw new CedarError(
        at,
        'a name of a resource stands for several URIs, because ToolHive replaces : / . and others by _',
      )
    if (name === '' || name.length > 1024 || name.includes('*'))
      throw new CedarError(
        at,
        'the name is empty, longer than 1024 characters, or has a *, which is a pattern in rules',
      )
    return { target, name }
  }

  #when(): readonly Term[] {
    this.#word('when')
    this.#sign('{')
    const terms = [this.#term()]
    while (this.#takes('&&')) {
      if (terms.length === MAX_TERMS) throw this.#error(`the condition has more than ${MAX_TERMS} parts`)
      terms.push(this.#term())
    }
    this.#sign('}')
    return terms
  }

  #term(): Term {
    if (this.#takes('[')) {
      const values = [this.#string('a string').text]
      while (this.#takes(',')) values.push(this.#string('a string').text)
      this.#sign(']')
      this.#sign('.')
      this.#word('contains')
      this.#sign('(')
      const claim = this.#claim()
      this.#sign(')')
      return { claim, is: 'oneOf', values }
    }
    const claim = this.#claim()
    if (this.#takes('==')) return { claim, is: 'equal', values: [this.#string('a string').text] }
    this.#sign('.')
    this.#word('contains')
    this.#sign('(')
    const { text } = this.#string('a string')
    this.#sign(')')
    return { claim, is: 'contains', values: [text] }
  }

  /** `principal.claim_x` or `principal["claim_x"]`. */
  #claim(): string {
    this.#word('principal')
    const isIndex = this.#takes('[')
    if (!isIndex) this.#sign('.')
    const { text, kind, ...at } = this.#next
    if (kind !== (isIndex ? 'string' : 'word') || !/^claim_./su.test(text))
      throw new CedarError(at, 'conditions may use attributes of the principal whose name starts with claim_ only')
    this.#at += 1
    if (isIndex) this.#sign(']')
    return text.slice('claim_'.length)
  }

  get #next(): Token {
    const token = this.#tokens[this.#at] ?? this.#tokens.at(-1)
    if (token === undefined) throw new CedarError({ line: 1, column: 1 }, 'there is no policy')
    return token
  }

  #isWord(text: string): boolean {
    return this.#next.kind === 'word' && this.#next.text === text
  }

  #word(text: string): void {
    if (!this.#isWord(text)) throw this.#unexpected(`"${text}"`)
    this.#at += 1
  }

  #takes(text: string): boolean {
    const isIt = this.#next.kind === 'sign' && this.#next.text === text
    if (isIt) this.#at += 1
    return isIt
  }

  #sign(text: string, reason?: string): void {
    if (!this.#takes(text)) throw reason === undefined ? this.#unexpected(`"${text}"`) : this.#error(reason)
  }

  #string(what: string): Token {
    const token = this.#next
    if (token.kind !== 'string') throw this.#unexpected(what)
    this.#at += 1
    return token
  }

  #unexpected(expected: string): CedarError {
    const { kind, text } = this.#next
    const reason = kind !== 'string' && Object.hasOwn(REASONS, text) ? REASONS[text] : undefined
    const found = kind === 'end' ? text : JSON.stringify(text.slice(0, 40))
    return this.#error(reason ?? `found ${found}; expected ${expected}`)
  }

  #error(reason: string): CedarError {
    return new CedarError(this.#next, reason)
  }
}
