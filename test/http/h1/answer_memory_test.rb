# frozen_string_literal: true

# test: sanitize

require "test_helper"
require_relative "parsing_helpers"

# Heads of responses while the garbage collector runs at any moment, whatever the application's objects do meanwhile.
class AnswerMemoryTest < Minitest::Test
  include ParsingHelpers

  HEADERS = {
    "content-type" => "text/html; charset=utf-8", "X-Upper-Case" => "a", "set-cookie" => %w[a=b c=d],
    "x-number" => 1, "x-symbols" => %i[a b], "x-#{"long" * 20}" => "v" * 3_000, "connection" => :close
  }.freeze
  LINES = <<~HEAD.gsub("\n", "\r\n")
    content-type: text/html; charset=utf-8
    x-upper-case: a
    set-cookie: a=b
    set-cookie: c=d
    x-number: 1
    x-symbols: a
    x-symbols: b
    x-#{"long" * 20}: #{"v" * 3_000}
  HEAD

  # Does what it is told when it becomes a String.
  class Lively
    def initialize(&block) = @block = block
    def to_s = @block.call
  end

  def setup
    @writer = H1::ResponseWriter.new
    @request = parser.parse(request("Upgrade: websocket", "Connection: upgrade"))
  end

  def head(headers, protocol: nil) = @writer.head(@request, 200, headers, 0, true, protocol, false).bytes
  def lines_of(bytes) = bytes[/\r\n(.*?)date: /m, 1]

  def test_under_gc_stress
    GC.stress = true
    bytes = head(HEADERS)
    hints = @writer.early_hints({ "link" => "</a>".dup, "x" => [+"b", 1] })
    GC.stress = false

    assert_equal LINES, lines_of(bytes)
    assert_equal "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nx: b\r\nx: 1\r\n\r\n", hints
  ensure
    GC.stress = false
  end

  def test_rejections_under_gc_stress
    GC.stress = true
    messages = [{ "a" => +"b\n" }, { "a" => [1, "\n"] }, { +"ä" => "b" }, { 1 => "a" }, { "content-length" => :x },
                [["transfer-encoding", +"gzip"]]].map do |headers|
      head(headers)
      nil
    rescue Heddle::HTTP::InvalidResponseError => e
      e.message
    end
    GC.stress = false

    assert_equal 6, messages.compact.size
  ensure
    GC.stress = false
  end

  def test_the_writer_survives_compaction
    3.times do
      assert_equal LINES, lines_of(head(HEADERS))
      GC.compact
    end
  end

  # One buffer serves all answers of a loop, and `to_s` may wait while another answer is written.
  def test_answers_that_interleave_keep_apart
    inner = nil
    value = Lively.new { (inner = head({ "x-inner" => "y" * 5_000 })) && "outer" }
    outer = head({ "a" => "1", "x-outer" => value, "b" => "2" })

    assert_equal "a: 1\r\nx-outer: outer\r\nb: 2\r\n", lines_of(outer)
    assert_equal "x-inner: #{"y" * 5_000}\r\n", lines_of(inner)
    assert_operator outer, :start_with?, "HTTP/1.1 200 OK\r\n"
  end

  def test_an_exception_of_the_application_is_raised_and_leaks_nothing
    error = assert_raises(RuntimeError) { head({ "a" => "1", "b" => Lively.new { raise "mine" } }) }

    assert_equal "mine", error.message
    assert_equal "c: 3\r\n", lines_of(head({ "c" => "3" }))
  end

  def test_headers_that_change_while_they_are_read
    headers = { "a" => "1" }
    headers["b"] = Lively.new { headers["c"] = "3" and "2" }

    assert_equal "a: 1\r\nb: 2\r\n", lines_of(head(headers))
    assert_equal "a: 1\r\nb: 2\r\nc: 3\r\n", lines_of(head(headers))
  end

  def test_a_protocol_string_that_changes_is_sent_as_it_was_checked
    protocol = +"websocket"
    headers = { "a" => Lively.new { protocol.replace("x\r\ny: z") && "b" } }

    assert_includes head(headers, protocol:), "upgrade: websocket\r\n"
  end

  def test_hashes_that_are_not_quite_hashes
    plain = Class.new(Hash).new.merge!("a" => "1")
    own = Class.new(Hash) { def each = super { |name, value| yield(name, value.join("+")) } }.new.merge!("a" => %w[1 2])
    pairs = Object.new.tap { |object| def object.each(&) = [%w[a 1], ["b", %w[2 3]], %w[c 4 5]].each(&) }
    apart = Object.new.tap { |object| def object.each = yield("a", "1") }

    assert_equal "a: 1\r\n", lines_of(head(plain))
    assert_equal "a: 1+2\r\n", lines_of(head(own))
    assert_equal "a: 1\r\nb: 2\r\nb: 3\r\nc: 4\r\n", lines_of(head(pairs))
    assert_equal "a: 1\r\n", lines_of(head(apart))
  end

  # Names that were found right are kept in a table of fixed size.
  def test_names_that_evict_each_other_from_the_cache_stay_distinct
    names = Array.new(2_000) { |number| "x-#{number.to_s(36)}" }
    expected = names.map { |name| "#{name}: #{name}\r\n" }.join

    2.times { assert_equal expected, lines_of(head(names.to_h { |name| [name, name] })) }
    ["x-1 ", "x-1:", "x-1\n", "X-1\0"].each { |name| assert_raises(Heddle::HTTP::InvalidResponseError) { head({ name => "x" }) } }
  end

  def test_each_ractor_writes_its_own
    program = <<~RUBY
      require "heddle/http"
      H1 = Heddle::HTTP::H1
      Heddle::HTTP::ResponseHead # a Ractor of Ruby 3.3 can load nothing
      Request = Struct.new(:method, :minor, :keep_alive?)
      ractors = Array.new(2) do |number|
        Ractor.new(number) do |n|
          writer = H1::ResponseWriter.new
          request = Request.new("GET", 1, true)
          names = Array.new(200) do |i|
            writer.head(request, 200, { "x-\#{n}-\#{i % 50}" => "v" }, nil, true, nil, false).bytes[/^x-.*v/]
          end
          names.uniq.size
        end
      end
      print ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }.inspect
    RUBY
    out = IO.popen([RbConfig.ruby, "-W0", "-I#{File.join(ROOT, "lib")}", "-e", program], err: %i[child out], &:read)

    assert_equal "[50, 50]", out
  end
end
