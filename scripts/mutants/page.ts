import type { Mutation } from './mutation.ts'

/** docs/engineering/mutants.md: what was planted and noticed the last time; `day` is when, as YYYY-MM-DD. */
export function mutantsPage(mutations: readonly Mutation[], day: string): string {
  const rooms = Map.groupBy(mutations, ({ file }) => file.split('/').slice(0, 2).join('/'))
  const sections = [...rooms].map(([room, planted]) => {
    const rows = planted.map(({ rule, file, tests }) => {
      const killers = tests.map((name) => `\`${name.replace(/^test\//, '')}\``).join(', ')
      return `| ${rule} | \`${file.slice(room.length + 1)}\` | ${killers} |`
    })
    return `## ${room}\n\n| rule | line in | noticed by (in \`test/\`) |\n| --- | --- | --- |\n${rows.join('\n')}\n`
  })
  return `# Mutants\n\n<!-- Written by \`npm run mutants -- --report\` from scripts/mutants/. -->\n\n\`npm run mutants\` breaks one line at a time that guards something, in copies of the tree, and runs the tests that are expected to notice, the quickest first. It fails when they do not, when a test file does not even load with it, when they fail unbroken, and when a line of its list is no longer in the code exactly once. All of them take about half an hour on two cores; a run that was cut goes on with \`--resume\`, \`--only TEXT\` runs those whose file, rule or test contains a text, \`--since COMMIT\` those whose file or tests were changed, and \`--help\` says the rest.\n\nLast result, of ${day}: ${mutations.length} planted, ${mutations.length} noticed. Additions to the list since are not in these tables; \`npm run mutants -- --list\` counts it.\n\n${sections.join('\n')}`
}
