'use strict'
// Written for any Node, old ones included: it has to run there to say what is wrong.
var wanted = [24, 12]
var found = process.versions.node.split('.').map(Number)
if (found[0] < wanted[0] || (found[0] === wanted[0] && found[1] < wanted[1])) {
  console.error(
    'mcp-extauth needs Node ' +
      wanted.join('.') +
      ' or newer; this is ' +
      process.version +
      '. Run "npm ci" and start it through npm ("npm start", "npm run extauth -- …"), which brings Node 24 on Linux x64 and arm64; elsewhere install Node 24.',
  )
  process.exit(2)
}
