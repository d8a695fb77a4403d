# frozen_string_literal: true

# test: each mode

require "test_helper"
require "tempfile"
require_relative "rack_helpers"

class ResponderTest < Minitest::Test
  include RackHelpers

  # An enumerable body that remembers that it was closed.
  class EachBody
    attr_reader :closed

    def initialize(*chunks, failure: nil)
      @chunks = chunks
      @failure = failure
      @closed = 0
    end

    def each(&block)
      @chunks.each(&block)
      raise @failure if @failure
    end

    def close = @closed += 1
  end

  # A body that is a file.
  class FileBody < EachBody
    def initialize(path, *) = (super(*) and @path = path)

    def to_path = @path
  end

  def teardown
    raise log.failures.first unless @failures_expected || log.failures.empty?
  end

  # Notes which parts of files were sent by the system, without reading them.
  def serving_files
    sent = @sent_files = []
    notes = Module.new do
      define_method(:call) do |exchange|
        exchange.define_singleton_method(:send_file) { |file, *part| (sent << part) && super(file, *part) }
        super(exchange)
      end
    end
    @noted = notes
    yield
  ensure
    @noted = nil
  end

  def handler(*, **)
    made = super
    return made unless @noted

    made.singleton_class.prepend(@noted)
    made
  end

  def expect_failure(klass)
    @failures_expected = true

    assert_equal [klass], log.failures.map(&:class)
  end

  def test_an_array_leaves_in_one_write_with_its_length
    output = serve(answer(200, { "content-type" => "text/plain" }, %w[ab cä]), kind: :packets)
    status, headers, content = parts(output)

    assert_equal ["HTTP/1.1 200 OK", "5", "abcä".b], [status, headers["content-length"], content]
    assert_equal 1, conversation.reads.size
    assert_predicate self, :kept?
  end

  def test_an_array_of_binary_and_text_pieces
    assert_equal "ä\xFF".b, parts(serve(answer(200, {}, ["ä", "\xFF".b])))[2]
  end

  def test_the_length_of_an_array_wins_over_the_applications
    output = serve(answer(200, { "content-length" => "3" }, ["abcde"]), lint: false)

    assert_equal(%w[5 abcde], parts(output).then { |_, headers, content| [headers["content-length"], content] })
  end

  def test_an_enumerable_is_chunked_and_closed
    body = EachBody.new("a", "", "bc")
    _, headers, content = parts(serve(answer(200, {}, body), lint: false))

    assert_equal ["chunked", "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", 1], [headers["transfer-encoding"], content, body.closed]
    assert_predicate self, :kept?
    assert_equal "abc", unchunk(parts(serve(answer(200, {}, EachBody.new("a", "bc"))))[2])[0]
  end

  def test_an_enumerable_with_a_length_is_not_chunked
    _, headers, content = parts(serve(answer(200, { "content-length" => "3" }, EachBody.new("a", "bc"))))

    assert_equal ["3", nil, "abc"], [headers["content-length"], headers["transfer-encoding"], content]
  end

  def test_an_enumerable_to_http_one_zero_ends_with_the_connection
    output = serve(answer(200, {}, EachBody.new("a", "bc")), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")

    assert_equal(%w[close abc], parts(output).then { |_, headers, content| [headers["connection"], content] })
    refute_predicate self, :kept?
  end

  def test_head_has_the_length_and_no_content
    body = EachBody.new("abc")
    output = serve(answer(200, { "content-length" => "3" }, body), HEAD, lint: false)

    assert_operator output, :end_with?, "content-length: 3\r\n\r\n"
    assert_equal 1, body.closed
    { ["abc"] => "3", [] => nil }.each do |content, length|
      output = serve(answer(200, {}, content), HEAD, lint: false)

      assert_equal(["", length], parts(output).then { |_, headers, sent| [sent, headers["content-length"]] })
    end
  end

  def test_statuses_without_content_have_none
    [204, 304].each do |status|
      output = serve(answer(status, {}, EachBody.new("abc")), lint: false)

      assert_equal(["", []], parts(output).then { |_, headers, content| [content, headers.keys - ["date"]] })
      assert_predicate self, :kept?
    end
  end

  def test_content_that_the_application_chunked_itself_is_framed_once
    pieces = ["3\r\nabc\r\n", "2\r\n", "de\r\n0\r\n", "\r\n"]
    _, headers, content = parts(serve(answer(200, { "transfer-encoding" => "chunked" }, EachBody.new(*pieces))))

    assert_equal ["chunked", ["abcde", ""]], [headers["transfer-encoding"], unchunk(content)]
    assert_predicate self, :kept?
    _, headers, content = parts(serve(answer(200, { "transfer-encoding" => "chunked" }, EachBody.new(*pieces)),
                                      "GET / HTTP/1.0\r\n\r\n"))

    assert_equal [nil, "abcde"], [headers["transfer-encoding"], content]
    assert_equal "abcde", unchunk(parts(serve(answer(200, { "transfer-encoding" => "chunked" }, pieces)))[2])[0]
  end

  def test_content_that_is_only_said_to_be_chunked_closes_the_connection
    output = serve(answer(200, { "transfer-encoding" => "chunked" }, EachBody.new("hello")))

    refute_includes output, "hello"
    refute_predicate self, :kept?
    expect_failure Heddle::HTTP::InvalidResponseError
    output = serve(answer(200, { "transfer-encoding" => "chunked" }, EachBody.new("1\r\nx\r\n")))

    refute_includes output, "0\r\n\r\n"
    assert_match(/no last chunk/, log.violations.first)
    refute_predicate self, :kept?
  end

  def test_content_longer_than_its_length_is_cut_and_reported
    output = serve(answer(200, { "content-length" => "3" }, EachBody.new("ab", "cdef", "gh")), GET + GET, lint: false)

    assert_equal %w[abc abc], output.scan(/\r\n\r\n(.{3})/m).flatten
    assert_match(/longer than its content-length of 3 bytes/, log.violations.first)
    assert_predicate self, :kept?
  end

  def test_content_shorter_than_its_length_closes_the_connection
    serve(answer(200, { "content-length" => "30" }, EachBody.new("ab")), GET + GET, lint: false)

    assert_match(/is 2 bytes long, but its content-length is 30/, log.violations.first)
    refute_predicate self, :kept?
    assert_equal 1, conversation.output.scan("HTTP/1.1").size
  end

  def test_a_body_that_raises_half_way_closes_without_the_last_chunk
    body = EachBody.new("a", failure: RuntimeError.new("broken"))
    output = serve(answer(200, {}, body), GET + GET)

    assert_operator output, :end_with?, "1\r\na\r\n"
    assert_equal 1, body.closed
    refute_predicate self, :kept?
    expect_failure RuntimeError
  end

  def test_a_file_is_sent_without_reading_it
    Tempfile.create("heddle") do |file|
      file.write("x" * 3_000_000)
      file.flush
      body = FileBody.new(file.path, "never read")
      _, headers, content = parts(serving_files { serve(answer(200, {}, body), lint: false) })

      assert_equal ["3000000", 3_000_000, 1], [headers["content-length"], content.bytesize, body.closed]
      assert_equal [[0, 1_048_576], [1_048_576, 1_048_576], [2_097_152, 902_848]], @sent_files
      _, headers, content = parts(serve(answer(200, { "content-length" => "2" }, FileBody.new(file.path, "ab")),
                                        lint: false))

      assert_equal %w[2 ab], [headers["content-length"], content], "a range is the body's own"
      _, headers, content = parts(serve(answer(200, {}, body), HEAD, lint: false))

      assert_equal ["3000000", ""], [headers["content-length"], content]
    end
  end

  def test_a_path_that_is_not_a_file_is_not_sent_as_one
    ["/nonexistent", Dir.tmpdir].each do |path|
      content = parts(serve(answer(200, {}, FileBody.new(path, "ab")), lint: false))[2]

      assert_equal "ab", unchunk(content)[0]
    end
  end

  def test_rack_files_serves_a_file_and_its_ranges
    require "rack/files"
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "a.txt"), "0123456789")
      app = Rack::Files.new(folder)

      assert_equal "0123456789", parts(serving_files { serve(app, get("/a.txt")) })[2]
      assert_equal [[0, 10]], @sent_files
      status, headers, content = parts(serve(app, "GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\n\r\n"))

      assert_equal ["HTTP/1.1 206 Partial Content", "bytes 2-4/10", "234"], [status, headers["content-range"], content]
    end
  end

  def test_an_empty_file_and_an_empty_array
    Tempfile.create("heddle") do |file|
      assert_equal "0", parts(serve(answer(200, {}, FileBody.new(file.path)), lint: false))[1]["content-length"]
    end
    assert_equal "0", parts(serve(answer(200, {}, [])))[1]["content-length"]
  end
end
