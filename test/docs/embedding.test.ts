// Does the example of the embedding guide run, and does it compile? Importing it does both.
import '../../docs/examples/embedded.test.ts'
