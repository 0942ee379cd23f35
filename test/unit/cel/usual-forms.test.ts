import { describe, expect, test } from 'vitest'
import { compileMatcher } from '../../../src/cel/index.ts'
import { claimsOf } from '../../support/cel/support/claims.ts'

const CLAIMS = claimsOf(`{
  "iss": "https://id.example.com", "sub": "ada", "username": "Ada.L", "email": "Ada@Example.com", "email_verified": true,
  "groups": ["system:dev", "ops", "ops", "Team-A"], "roles": "admin,reader", "amr": ["pwd", "mfa"], "level": 7, "ratio": 2.5,
  "exp": 1893456000, "nbf": 1893452400, "scope": "openid mcp:tools", "tags": {"env": "prod", "tier": "1"}, "numbers": [3, 1, 2],
  "kubernetes.io": {"namespace": "dev", "serviceaccount": {"name": "bot"}}, "https://example.com/roles": ["editor"],
  "realm_access": {"roles": ["admin"]}, "empty": "", "none": [], "null": null, "text": "  blank  ", "emoji": "a😀b"
}`)

/** Usual expressions, also from Kubernetes' authentication configuration; all are true for the claims above. */
const FORMS = `
claims.username.lowerAscii() == "ada.l"
claims.email.lowerAscii().endsWith("@example.com")
claims.username.upperAscii() == "ADA.L"
claims.email.split("@")[1] == "Example.com"
claims.email.split("@", 1)[0] == claims.email
claims.roles.split(",").exists(r, r == "admin")
"admin" in claims.roles.split(",")
claims.scope.split(" ").exists(s, s == "mcp:tools")
claims.groups.join(",") == "system:dev,ops,ops,Team-A"
claims.none.join() == ""
claims.email.substring(0, claims.email.indexOf("@")) == "Ada"
claims.email.substring(claims.email.lastIndexOf("@") + 1) == "Example.com"
claims.username.replace(".", "-") == "Ada-L"
claims.username.replace("a", "b", 1) == "Adb.L"
claims.text.trim() == "blank"
claims.username.charAt(0) == "A"
claims.emoji.charAt(1) == "😀"
claims.emoji.substring(2) == "b"
claims.username.reverse() == "L.adA"
"user:%s".format([claims.sub]) == "user:ada"
"%d-%.1f".format([1, claims.ratio]) == "1-2.5"
strings.quote(claims.sub) == "\\"ada\\""
claims.groups.filter(g, g.startsWith("system:")).map(g, g.substring(7)) == ["dev"]
!claims.username.startsWith("system:")
claims.groups.all(group, !group.startsWith("kube:"))
claims.groups.exists_one(g, g.startsWith("system:"))
claims.groups.existsOne(g, g == "Team-A")
claims.groups.exists(i, g, i == 0 && g == "system:dev")
claims.tags.exists(k, v, k == "env" && v == "prod")
claims.tags.all(k, v, k != "" && v != "")
claims.groups.existsOne(i, g, i > 0 && g == "Team-A")
claims.groups.exists_one(i, g, g.startsWith("Team"))
claims.tags.transformList(k, v, k + "=" + v).exists(t, t == "env=prod")
claims.tags.transformList(k, v, k == "env", v) == ["prod"]
claims.tags.transformMap(k, v, v + "!") == {"env": "prod!", "tier": "1!"}
claims.tags.transformMap(k, v, k == "env", v) == {"env": "prod"}
claims.tags.transformMapEntry(k, v, {v: k})["prod"] == "env"
cel.bind(domain, claims.email.split("@")[1], domain.lowerAscii() == "example.com")
cel.bind(g, claims.groups, cel.bind(r, claims.amr, size(g) + size(r) == 6))
claims.groups.exists(g, cel.bind(l, g.lowerAscii(), l == "team-a"))
sets.contains(claims.groups, ["ops", "Team-A"])
sets.intersects(claims.groups, ["sre", "ops"])
sets.equivalent(claims.groups.distinct(), ["ops", "system:dev", "Team-A"])
!sets.intersects(claims.groups, ["blocked"])
sets.contains(claims.amr, ["mfa"])
claims.groups.distinct().size() == 3
claims.numbers.sort() == [1.0, 2.0, 3.0]
claims.groups.sort()[0] == "Team-A"
claims.groups.sortBy(g, g.lowerAscii())[0] == "ops"
claims.numbers.reverse()[0] == 2
claims.numbers.slice(0, 2) == [3, 1]
[[1], [2, [3]]].flatten() == [1, 2, [3]]
[[1], [2, [3]]].flatten(2) == [1, 2, 3]
lists.range(3) == [0, 1, 2]
claims.numbers.max() == 3
claims.numbers.min() == 1
claims.numbers.sum() == 6
claims.groups.indexOf("ops") == 1
claims.groups.lastIndexOf("ops") == 2
!claims.numbers.isSorted()
claims.groups.first().value() == "system:dev"
claims.groups.last().orValue("") == "Team-A"
math.greatest(claims.level, 5) == 7
math.least([claims.level, 5]) == 5
math.abs(-claims.level) == 7
math.ceil(claims.ratio) == 3
math.floor(claims.ratio) == 2
math.round(claims.ratio) == 3
math.trunc(claims.ratio) == 2
math.sign(claims.ratio) == 1
math.isFinite(claims.ratio) && !math.isNaN(claims.ratio)
math.bitAnd(6, 3) == 2 && math.bitOr(6, 3) == 7
math.sqrt(4.0) == 2.0
claims.?department.orValue("none") == "none"
claims.?email.orValue("").endsWith("Example.com")
claims.?realm_access.roles.orValue([]).exists(r, r == "admin")
claims[?"https://example.com/roles"].orValue([]) == ["editor"]
claims.?groups.optMap(g, size(g)).orValue(0) == 4
claims.?department.optMap(d, d == "x").orValue(true)
claims.?a.or(claims.?email).hasValue()
!claims.?missing.hasValue()
claims.?missing.deeper.orValue(true)
has(claims.?realm_access.roles)
optional.of(claims.sub).value() == "ada"
optional.none().orValue("x") == "x"
!optional.ofNonZeroValue(claims.empty).hasValue()
[?claims.?sub, ?claims.?missing] == ["ada"]
{?"s": claims.?sub, ?"m": claims.?missing} == {"s": "ada"}
claims.\`kubernetes.io\`.namespace == "dev"
claims.\`kubernetes.io\`.serviceaccount.name == "bot"
has(claims.\`kubernetes.io\`)
has(claims.?\`kubernetes.io\`.namespace)
claims.email_verified == true
claims.exp - claims.nbf <= 86400.0
timestamp(int(claims.exp)) > timestamp("2026-01-01T00:00:00Z")
"mfa" in claims.amr && claims.level >= 5
claims.sub.matches("^[a-z]+$")
type(claims.groups) == list
`
  .trim()
  .split('\n')

describe('what is usually written is taken', () => {
  test('about a hundred forms', () => expect(FORMS.length).toBeGreaterThan(90))

  test.each(FORMS)('%s', (form) => {
    expect(compileMatcher(form).evaluate(CLAIMS)).toEqual({ outcome: 'matched' })
  })
})

describe('the functions beyond the core are bounded as those of the core', () => {
  const long = claimsOf(
    JSON.stringify({ text: 'a'.repeat(16_000), list: Array.from({ length: 3_000 }, (_, index) => `g${index}`) }),
  )
  const nested = (body: string, times: number) => `[claims.text]${`.map(x, ${body})`.repeat(times)}`

  test.each([
    ['replacing makes texts long', `size(${nested('x.replace("a", "aa")', 30)}) == 1`],
    ['an empty text is replaced', `size(${nested('x.replace("", "aa")', 30)}) == 1`],
    ['joining makes texts long', `size(${nested('[x, x].join(x)', 20)}) == 1`],
    ['formatting makes texts long', `size(${nested('"%s%s".format([x, x])', 30)}) == 1`],
    ['formatting repeats', `size("${'%s'.repeat(250)}".format([${'claims.list,'.repeat(250)}])) > 0`],
    ['splitting', 'claims.text.split("").map(x, claims.text.split("")).size() > 0'],
    ['looking for a long text', 'claims.list.all(g, claims.text.indexOf(claims.text + "b") < 0)'],
    ['sets', 'sets.contains(claims.list, claims.list)'],
    ['equivalent sets', 'sets.equivalent(claims.list, claims.list.reverse())'],
    ['distinct', 'claims.list.distinct().size() == 3000'],
    ['sorting', 'claims.list.all(g, claims.list.sort().size() > 0)'],
    ['sorting long texts', 'lists.range(9).map(i, claims.text + string(i)).sortBy(x, x + x).size() == 9'],
    ['a range', 'lists.range(9007199254740993).size() > 0'],
    ['ranges of ranges', 'lists.range(9000).map(i, lists.range(9000)).size() > 0'],
    ['flattening', 'claims.list.all(g, claims.list.flatten(9).size() > 0)'],
    ['pairs', 'claims.list.all(i, g, claims.list.all(j, h, g != "" || h != ""))'],
    [
      'names for values that double',
      `cel.bind(a, claims.list + claims.list, ${'cel.bind(a, a + a, '.repeat(5)}a.size() > 0${')'.repeat(6)}`,
    ],
    ['a macro absorbed by ||', 'claims.list.transformMap(i, g, claims.list.distinct()).size() == 1 || true'],
  ])('%s', (_what, expression) => {
    expect(compileMatcher(expression).evaluate(long)).toEqual({ outcome: 'limit' })
  })

  test.each([
    ['%.9999f'.replace('9999', '101'), '[1.5]'],
    ['%.99999999999999f', '[1.5]'],
  ])('%s asks for too many digits', (format, values) => {
    expect(compileMatcher(`"${format}".format(${values}) == ""`).evaluate(CLAIMS)).toMatchObject({ outcome: 'error' })
  })

  test.each(['three macros', 'two over two variables'])('%s inside each other are refused', (what) => {
    const names = what === 'three macros' ? 'x' : 'i, x'
    const inside = `claims.a.all(${names}, x.all(${names}, x.all(${names}, x == 1)))`
    expect(() => compileMatcher(inside)).toThrow(/macros inside each other/)
  })

  test.each([
    'claims.sub.hasValue()',
    'claims.groups.sort() == claims.sub',
    'claims.groups.substring(0) == ""',
    'sets.contains(claims.sub, ["a"])',
    'math.greatest(claims.sub, 1) == 1',
    'claims.groups.slice(0, 99) == []',
    'claims.sub.substring(9) == ""',
    '"x" in claims.?groups',
    'size(claims.?groups) > 0',
    'claims.?groups.exists(g, true)',
    'claims.?sub == "ada" && claims.?sub.value() > 1',
    '[claims.level, claims.sub].sort() == []',
    'optional.none().value() == 1',
  ])('%s is no match, and ends nothing else', (expression) => {
    expect(compileMatcher(expression).evaluate(CLAIMS).outcome).not.toBe('matched')
    expect(compileMatcher(`(${expression}) || true`).evaluate(CLAIMS)).toEqual({ outcome: 'matched' })
  })

  test('what is not evaluated does not fail: or, orValue, optMap', () => {
    for (const form of [
      'claims.?sub.orValue(claims.missing) == "ada"',
      'claims.?sub.or(optional.of(claims.missing)).hasValue()',
      '!claims.?missing.optMap(m, m.missing == 1).hasValue()',
    ])
      expect(compileMatcher(form).evaluate(CLAIMS)).toEqual({ outcome: 'matched' })
  })
})
