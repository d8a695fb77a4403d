# frozen_string_literal: true

# Prints tables.c: the static table of HPACK (RFC 7541, appendix A).
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

def put_array(items, a_line)
  items.each_slice(a_line) { |slice| puts "    #{slice.join(", ")}," }
end

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
puts "};"
