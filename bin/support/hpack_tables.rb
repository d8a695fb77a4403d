# frozen_string_literal: true

# Prints tables.c: the static table of HPACK (RFC 7541, appendix A) and its Huffman code (appendix B).
#
#   ruby bin/support/hpack_tables.rb > ext/heddle/http/h2/tables.c

# Appendix A in its order: a name, and the value if the entry has one.
STATIC_TABLE = <<~ENTRIES.lines(chomp: true).map { |line| line.split(" ", 2) }
  :authority
  :method GET
  :method POST
  :path /
  :path /index.html
  :scheme http
  :scheme https
  :status 200
  :status 204
  :status 206
  :status 304
  :status 400
  :status 404
  :status 500
  accept-charset
  accept-encoding gzip, deflate
  accept-language
  accept-ranges
  accept
  access-control-allow-origin
  age
  allow
  authorization
  cache-control
  content-disposition
  content-encoding
  content-language
  content-length
  content-location
  content-range
  content-type
  cookie
  date
  etag
  expect
  expires
  from
  host
  if-match
  if-modified-since
  if-none-match
  if-range
  if-unmodified-since
  last-modified
  link
  location
  max-forwards
  proxy-authenticate
  proxy-authorization
  range
  referer
  refresh
  retry-after
  server
  set-cookie
  strict-transport-security
  transfer-encoding
  user-agent
  vary
  via
  www-authenticate
ENTRIES

# Appendix B: the symbols whose codes have so many bits; 256 is the end of the string. The code is canonical: codes of
# one size count up in the order of their symbols, so the sizes say everything.
END_OF_STRING = 256
SYMBOLS_BY_BITS = {
  5 => [48..50, 97, 99, 101, 105, 111, 115, 116],
  6 => [32, 37, 45..47, 51..57, 61, 65, 95, 98, 100, 102..104, 108..110, 112, 114, 117],
  7 => [58, 66..87, 89, 106, 107, 113, 118..122],
  8 => [38, 42, 44, 59, 88, 90],
  10 => [33, 34, 40, 41, 63],
  11 => [39, 43, 124],
  12 => [35, 62],
  13 => [0, 36, 64, 91, 93, 126],
  14 => [94, 125],
  15 => [60, 96, 123],
  19 => [92, 195, 208],
  20 => [128, 130, 131, 162, 184, 194, 224, 226],
  21 => [153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230],
  22 => [129, 132..134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185..187, 189, 190, 196, 198, 228,
         232, 233],
  23 => [1, 135, 137..141, 143, 147, 149..152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182, 183, 188, 191, 197,
         231, 239],
  24 => [9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237],
  25 => [199, 207, 234, 235],
  26 => [192, 193, 200..202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255],
  27 => [203, 204, 211, 212, 214, 221..223, 241, 244..248, 250..254],
  28 => [2..8, 11, 12, 14..21, 23..31, 127, 220, 249],
  30 => [10, 13, 22, END_OF_STRING]
}.transform_values { |symbols| symbols.flat_map { |symbol| Array(symbol) } }.freeze

# symbol => [code, bits]
def build_codes
  code = 0
  previous = 0
  SYMBOLS_BY_BITS.each_with_object({}) do |(bits, symbols), codes|
    code <<= bits - previous
    previous = bits
    symbols.each do |symbol|
      codes[symbol] = [code, bits]
      code += 1
    end
  end
end

# The inner nodes of the code's tree: each has its two children, an inner node's number or [symbol].
def build_tree(codes)
  nodes = [[nil, nil]]
  codes.each do |symbol, (code, bits)|
    node = 0
    (bits - 1).downto(1) do |bit|
      side = code[bit]
      nodes << [nil, nil] unless nodes[node][side]
      node = nodes[node][side] ||= nodes.size - 1
    end
    nodes[node][code[0]] = [symbol]
  end
  nodes
end

# The nodes where a string may end: behind at most seven bits, all of them 1, that began no symbol.
def ends(nodes)
  (0...7).reduce([0]) { |found, _| found << nodes[found.last][1] }
end

EMIT = 0x10000
ACCEPT = 0x20000
FAIL = 0x40000

# The effect of four bits in a node: the next node, the symbol in the second byte, and flags.
def step(nodes, accepting, node, four)
  symbol = nil
  3.downto(0) do |bit|
    node = nodes[node][four[bit]]
    next unless node.is_a?(Array)
    return FAIL if node == [END_OF_STRING]

    symbol = node.first
    node = 0
  end
  node | (symbol ? (symbol << 8) | EMIT : 0) | (accepting.include?(node) ? ACCEPT : 0)
end

def put_array(items, a_line)
  items.each_slice(a_line) { |slice| puts "    #{slice.join(", ")}," }
end

codes = build_codes
nodes = build_tree(codes)
accepting = ends(nodes)
abort "the Huffman code is not complete" unless nodes.flatten(1).none?(&:nil?) && nodes.size == END_OF_STRING
names = STATIC_TABLE.each_with_index.map { |(name, _), at| [name, at + 1] }.uniq(&:first)
by_size = names.sort_by { |name, index| [name.size, index] }
longest = by_size.last.first.size

puts "/* Written by bin/support/hpack_tables.rb. */", '#include "http/h2/tables.h"', ""
puts "const heddle_hpack_static_entry heddle_hpack_static_table[HEDDLE_HPACK_STATIC_COUNT + 1] = {"
STATIC_TABLE.each_with_index do |(name, value), at|
  puts %(    [#{at + 1}] = {"#{name}", "#{value}", #{name.size}, #{value.to_s.size}},)
end
puts "};", "", "const uint8_t heddle_hpack_static_names[] = {"
put_array(by_size.map(&:last), 20)
puts "};", "", "const uint8_t heddle_hpack_static_name_starts[HEDDLE_HPACK_LONGEST_STATIC_NAME + 2] = {"
put_array((0..(longest + 1)).map { |size| by_size.count { |name, _| name.size < size } }, 20)
puts "};", "", "const heddle_huffman_code heddle_huffman_codes[256] = {"
put_array(codes.sort.first(256).map { |_, (code, bits)| format("{0x%<code>07x, %<bits>d}", code:, bits:) }, 6)
puts "};", "", "const uint32_t heddle_huffman_steps[256 * 16] = {"
steps = nodes.each_index.flat_map { |node| (0...16).map { |four| step(nodes, accepting, node, four) } }
put_array(steps.map { |flags| format("0x%<flags>05x", flags:) }, 12)
puts "};"
