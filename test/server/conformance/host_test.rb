# frozen_string_literal: true

require_relative "support/cases"

# RFC 9112, 3.2 and RFC 9110, 7.2: Host.
class HostConformanceTest < Minitest::Test
  include Conformance

  {
    "a" => ["a", nil], "example.org" => ["example.org", nil], "Example.ORG:80" => ["Example.ORG", "80"],
    "a:8080" => %w[a 8080], "a:" => ["a", nil], "a:0" => %w[a 0], "a:65535" => %w[a 65535],
    "127.0.0.1" => ["127.0.0.1", nil], "127.0.0.1:9" => ["127.0.0.1", "9"], "1.2.3" => ["1.2.3", nil],
    "a.b-c_d~e" => ["a.b-c_d~e", nil], "a." => ["a.", nil], "xn--4ca.example" => ["xn--4ca.example", nil],
    "a%2Fb" => ["a%2Fb", nil], "a!$&'()*+;=b" => ["a!$&'()*+;=b", nil],
    "[::1]" => ["[::1]", nil], "[::1]:80" => ["[::1]", "80"], "[::]" => ["[::]", nil], "[1::]:1" => ["[1::]", "1"],
    "[1:2:3:4:5:6:7:8]" => ["[1:2:3:4:5:6:7:8]", nil], "[fe80::1:2]:80" => ["[fe80::1:2]", "80"],
    "[::ffff:192.0.2.1]" => ["[::ffff:192.0.2.1]", nil], "[ABCD:ef01::]" => ["[ABCD:ef01::]", nil],
    "[v7.a:b]" => ["[v7.a:b]", nil]
  }.each do |host, (name, port)|
    expected = { "HTTP_HOST" => host, "SERVER_NAME" => name }
    expected["SERVER_PORT"] = port if port
    accepts "the host #{host.bytes.map { |byte| byte.chr =~ /\w/ ? byte.chr : format("%02x", byte) }.join}",
            request(host: "Host: #{host}"), env: expected
  end
  accepts "white space around a host", request(host: "Host: \t a:8 \t"), env: { "HTTP_HOST" => "a:8" }
  accepts "a host in another spelling", request(host: "hOsT: a"), env: { "HTTP_HOST" => "a", "SERVER_NAME" => "a" }
  accepts "a host in the last line", request(host: ["X-A: b", "Host: c"]), env: { "HTTP_HOST" => "c" }
  accepts "another host in an absolute target", request(line: "GET http://b:8/ HTTP/1.1", host: "Host: c"),
          env: { "HTTP_HOST" => "b:8", "SERVER_NAME" => "b", "SERVER_PORT" => "8" }

  refuses "a request without a host", 400, request(host: nil)
  refuses "an absolute target without a host line", 400, request(line: "GET http://a/ HTTP/1.1", host: nil)
  refuses "an empty host", 400, request(host: "Host:")
  refuses "two hosts", 400, request(host: ["Host: a", "Host: b"])
  refuses "two equal hosts", 400, request(host: ["Host: a", "Host: a"])
  refuses "two hosts in different spelling", 400, request(host: ["Host: a", "X-A: b", "hOST: a"])
  refuses "a host and an empty one", 400, request(host: ["Host: a", "Host:"])
  refuses "two hosts beside an absolute target", 400,
          request(line: "GET http://a/ HTTP/1.1", host: ["Host: a", "Host: a"])
  refuses "a bad host beside an absolute target", 400, request(line: "GET http://a/ HTTP/1.1", host: "Host: b c")

  {
    "a list" => "a, b", "a list without a space" => "a,b:80:80", "a space" => "a b", "a tab" => "a\tb",
    "a path" => "a/b",
    "a slash at the end" => "a/", "a query" => "a?b", "a fragment" => "a#b", "a user" => "u@a",
    "a user and password" => "u:p@a",
    "a scheme" => "http://a", "a port of letters" => "a:b", "a port with a sign" => "a:-1",
    "a port with a space" => "a: 80",
    "two ports" => "a:1:2", "a port alone" => ":80", "a colon alone" => ":", "a port in hexadecimal" => "a:0x50",
    "an open bracket" => "[::1", "a closed bracket" => "::1]", "an IPv6 address without brackets" => "::1",
    "something after brackets" => "[::1]a", "a port in brackets" => "[::1:80", "empty brackets" => "[]",
    "a name in brackets" => "[a.b]", "an IPv4 address in brackets" => "[127.0.0.1]", "two zero runs" => "[1::2::3]",
    "three colons" => "[:::1]", "nine groups" => "[1:2:3:4:5:6:7:8:9]", "two groups" => "[1:2]",
    "a group too long" => "[::12345]",
    "a group of other letters" => "[::g]", "a zone" => "[fe80::1%25eth0]", "a bad IPv4 tail" => "[::256.0.0.1]",
    "a short IPv4 tail" => "[::1.2.3]", "a future address without a version" => "[v.a]", "a half escape" => "a%2",
    "a bad escape" => "a%zz", "a backslash" => "a\\b", "angle brackets" => "<a>", "quotes" => "\"a\"",
    "braces" => "{a}",
    "a pipe" => "a|b", "a caret" => "a^b", "a back quote" => "a`b", "bytes beyond ASCII" => "\xC3\xA4"
  }.each { |name, host| refuses "a host with #{name}", 400, request(host: "Host: #{host}") }
end
