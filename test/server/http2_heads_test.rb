# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/server_helpers"
require "open3"

# Heads of responses over HTTP/2: what is sent of an application's headers, and what the server adds.
class Http2HeadsTest < Minitest::Test
  include ServerHelpers

  # Of each kind, because each kind is sent in another way.
  BODIES = [["hello"], Enumerator.new { |parts| parts << "hello" }, lambda(&:close)].freeze

  # @return [Array<Array<String>>] of each head, the interim ones too: the status line, then the other lines
  def heads_of(status, headers, body = ["hello"], *flags, **options)
    app = lambda do |env|
      env["rack.early_hints"]&.call("link" => "</a>; rel=preload")
      [status, headers, body]
    end
    serving(app, lint: false, **options) do
      text, = Open3.capture2("curl", "-sS", "--http2-prior-knowledge", "-D", "-", "-o", File::NULL, *flags,
                             "http://127.0.0.1:#{port}/")
      return text.split("\r\n\r\n").map { |head| head.lines(chomp: true).map(&:rstrip) }
    end
  end

  def fields_of(...) = heads_of(...).last.drop(1).grep_v(/\Adate: /)

  def test_names_are_sent_in_lower_case_and_several_values_as_several_fields
    long = "X-#{"Long" * 20}"
    fields = { "X-One" => "a", long => "b", "set-cookie" => %w[c=1 d=2], "x-blank" => "  e\t", "x-empty" => "" }

    assert_equal ["x-one: a", "#{long.downcase}: b", "set-cookie: c=1", "set-cookie: d=2", "x-blank: e", "x-empty:",
                  "content-length: 5"], fields_of(200, fields)
  end

  def test_fields_about_the_connection_are_left_out
    fields = { "Connection" => "close, upgrade", "keep-alive" => "1", "upgrade" => "x",
               "transfer-encoding" => "identity", "proxy-connection" => "a", "rack.own" => "b", "status" => "c",
               "x-rest" => "d" }

    assert_equal ["x-rest: d", "content-length: 5"], fields_of(200, fields)
  end

  def test_the_date_is_the_servers_unless_the_application_has_set_one
    assert_equal 1, heads_of(200, {}).last.grep(/\Adate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\z/).size
    assert_equal ["date: Thu, 01 Jan 1970 00:00:00 GMT"],
                 heads_of(200, { "date" => "Thu, 01 Jan 1970 00:00:00 GMT" }).last.grep(/\Adate/)
  end

  # Status, body and flags of curl, and what is said of the content's length.
  { "content is in one piece" => [200, ["hello"], [], ["content-length: 5"]],
    "content comes piece by piece" => [200, Enumerator.new { |parts| parts << "hello" }, [], []],
    "only the head is asked for" => [200, ["hello"], ["-I"], ["content-length: 5"]],
    "only the head of nothing is asked for" => [200, [], ["-I"], []],
    "there is no content" => [204, [], [], []],
    "nothing has changed" => [304, [], [], []],
    "the form is to be reset" => [205, [], [], ["content-length: 0"]] }.each do |name, (status, body, flags, length)|
    define_method("test_where_#{name.tr(" ", "_")}") do
      head = heads_of(status, {}, body, *flags).last

      assert_equal ["HTTP/2 #{status}"], head.first(1)
      assert_equal length, head.grep(/\A(?:content-length|transfer-encoding)/)
    end
  end

  def test_early_hints_come_before_the_head
    hints, head = heads_of(200, { "x-a" => "b" }, early_hints: :on)

    assert_equal ["HTTP/2 103", "link: </a>; rel=preload"], hints
    assert_includes head, "x-a: b"
  end

  { "a line end in a value" => { "x-a" => "b\r\nc: d" }, "a blank in a name" => { "x a" => "b" },
    "a control character in a value" => { "x-a" => "b\u0001" },
    "too many fields" => (1..2_000).to_h { |i| ["x-#{i}", "a"] },
    "a coding that is no framing" => { "transfer-encoding" => "gzip" } }.each do |name, headers|
    define_method("test_#{name.tr(" ", "_")}_is_an_error_of_the_application") do
      BODIES.each { |body| assert_equal "HTTP/2 500", heads_of(200, headers, body).last.first }
    end
  end

  def test_a_change_of_protocol_is_an_error_of_the_application
    BODIES.each { |body| assert_equal "HTTP/2 500", heads_of(101, { "upgrade" => "x" }, body).last.first }
  end
end
