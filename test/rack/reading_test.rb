# frozen_string_literal: true

require "test_helper"
require "heddle/rack"
require "json"
require "psych"
require "stringio"
require "tempfile"
require "zlib"
require_relative "rack_helpers"

# rack.input reads as a StringIO does, which Puma gives to applications: each call is made on both.
class ReadingTest < Minitest::Test
  include RackHelpers

  TEXT = "one,two\nä\n\n#{"three" * 40},\r\nfour".b.freeze
  # A body in pieces, as a client sends them.
  Pieces = Struct.new(:text, :size) do
    def read
      piece = text.slice!(0, size)
      piece unless piece.empty?
    end
  end

  CALLS = {
    gets: ->(io) { Array.new(8) { io.gets } },
    gets_separator: ->(io) { [io.gets(","), io.gets("two\n"), io.gets("\n\nt"), io.gets("none"), io.gets(",")] },
    gets_nil: ->(io) { [io.gets(nil), io.gets(nil)] },
    gets_limit: ->(io) { [io.gets(3), io.gets(100), io.gets("o", 2), io.gets(nil, 4), io.gets(-1), io.gets(0)] },
    gets_paragraph: ->(io) { Array.new(3) { io.gets("") } },
    gets_paragraph_chomp: ->(io) { Array.new(3) { io.gets("", chomp: true) } },
    gets_chomp: ->(io) { Array.new(7) { io.gets(chomp: true) } },
    gets_chomp_separator: ->(io) { [io.gets("wo\n", chomp: true), io.gets(",", chomp: true)] },
    lineno: ->(io) { [io.gets, io.gets, io.lineno] },
    lineno_that_is_set: ->(io) { [io.lineno = 7, io.gets && io.lineno] },
    readline: ->(io) { [io.readline, io.readline(chomp: true)] },
    readline_at_the_end: ->(io) { io.read && io.readline },
    readlines: :readlines.to_proc,
    readlines_chomp: ->(io) { io.readlines(chomp: true) },
    each_line: ->(io) { [].tap { |all| io.each_line(chomp: true) { |line| all << line } } },
    each_line_limit: ->(io) { io.each_line(7).to_a },
    each_line_limit_zero: ->(io) { io.each_line(0).next },
    each_enumerator: ->(io) { io.each.with_index.map { |line, i| [i, line] } },
    enumerable: ->(io) { [io.first, io.each_slice(2).first, io.map(&:size)] },
    getc: ->(io) { [io.getc, io.getc, io.readchar] },
    getbyte: ->(io) { [io.getbyte, io.readbyte] },
    readbyte_at_the_end: ->(io) { io.read && io.readbyte },
    readchar_at_the_end: ->(io) { io.read && io.readchar },
    each_byte: ->(io) { [io.each_byte.to_a, io.getbyte] },
    each_byte_that_is_left: ->(io) { [io.each_byte.first(2), io.gets] },
    each_char_that_is_left: ->(io) { [io.each_char.first(2), io.gets] },
    each_char: ->(io) { io.each_char.to_a },
    each_codepoint: ->(io) { [io.each_codepoint.first(2), io.each_codepoint { nil }.equal?(io), io.getc] },
    ungetbyte: ->(io) { [io.getbyte, io.ungetbyte("o"), io.getc, io.ungetc("o"), io.ungetbyte(nil), io.read] },
    eof: ->(io) { [io.eof?, io.read.size, io.eof, io.eof?] },
    read_buffer: ->(io) { [io.read(3, b = +"x"), b, io.read(nil, b) && b.size, io.read(1, b), b] },
    readpartial_at_the_end: ->(io) { io.read && io.readpartial(1) },
    read_nonblock: ->(io) { [io.read_nonblock(2), io.read && io.read_nonblock(1, exception: false)] },
    read_nonblock_at_the_end: ->(io) { io.read && io.read_nonblock(1) },
    sysread: ->(io) { io.sysread(2) },
    encodings: ->(io) { [io.external_encoding, io.internal_encoding, io.read.encoding, io.gets, io.read(1)] },
    binmode: ->(io) { [io.binmode.equal?(io), io.getc] },
    set_encoding: lambda { |io|
      io.set_encoding("UTF-8")
      [io.external_encoding, io.gets, io.getc, io.getc, io.read(1)&.encoding, io.gets(2)&.encoding, io.read.encoding]
    },
    set_encoding_limit: ->(io) { io.set_encoding(Encoding::UTF_8) && [io.gets, io.gets(1), io.each_char.first(2)] },
    set_encoding_by_bom: ->(io) { [io.set_encoding_by_bom, io.read(2)] },
    terminal: ->(io) { [io.tty?, io.isatty, io.fileno, io.sync, io.closed?] },
    copy_stream: lambda { |io|
      to = StringIO.new(+"")
      [IO.copy_stream(io, to, 5), IO.copy_stream(io, to), to.string.b]
    }
  }.freeze
  # They return what there is.
  PIECEWISE = %i[sysread read_nonblock].freeze
  # Of bodies that are complete.
  ANYWHERE = {
    seek: ->(io) { [io.read(5), io.seek(0), io.read(1), io.seek(-3, IO::SEEK_END), io.read, io.pos] },
    seek_on: ->(io) { [io.seek(2, IO::SEEK_CUR), io.read(2), io.seek(1_000), io.read(1), io.read] },
    seek_before: ->(io) { io.seek(-1) },
    position: ->(io) { [io.pos = 3, io.tell, io.read(2), io.pos, io.rewind, io.pos] },
    rewind: ->(io) { [io.gets, io.gets, io.rewind, io.lineno, io.gets] },
    size: ->(io) { [io.size, io.length] },
    pread: ->(io) { [io.pread(3, 4), io.pread(0, 0), io.pos] },
    pread_at_the_end: ->(io) { io.pread(1, 1_000) },
    pread_before: ->(io) { io.pread(1, -1) },
    pread_of_a_negative_length: ->(io) { io.pread(-1, 1) },
    dup: ->(io) { [io.read(2), io.dup.read(2)] }
  }.freeze

  def complete(text) = Heddle::Rack::Input.new(text.b)

  def post(text) = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{text.bytesize}\r\n\r\n#{text.b}"

  def streamed(text, size) = Heddle::Rack::StreamedInput.new(Pieces.new(text.b, size))

  def outcome(input, call)
    call.call(input)
  rescue IOError, SystemCallError, ArgumentError => e
    e.class
  end

  def assert_as_string_io(input, text, name, call)
    expected = outcome(StringIO.new(text.b), call)
    found = outcome(input, call)
    # An Array shows the class of what differs, and nil, too.
    assert_equal [expected], [found], name
  end

  CALLS.merge(ANYWHERE).each do |name, call|
    define_method("test_#{name}_of_a_complete_body_is_as_of_a_string_io") do
      texts = name == :ungetbyte ? [TEXT] : [TEXT, "", "\n\n\nonly", "\xEF\xBB\xBFab"]
      texts.each { |text| assert_as_string_io(complete(text), text, name, call) }
    end
  end

  CALLS.each do |name, call|
    define_method("test_#{name}_of_a_streamed_body_is_as_of_a_string_io") do
      sizes = PIECEWISE.include?(name) ? [1_000] : [1, 3, 1_000]
      sizes.each { |size| assert_as_string_io(streamed(TEXT, size), TEXT, name, call) }
      assert_as_string_io(streamed("", 1), "", name, call)
    end
  end

  # Latin-1 that is read as UTF-8.
  def test_bytes_that_are_no_character_are_as_of_a_string_io
    text = "\xE9a€b\xE2\x82c\nd\xF0".b
    calls = { characters: ->(io) { io.set_encoding("UTF-8").each_char.to_a },
              codepoints: ->(io) { io.set_encoding("UTF-8").each_codepoint.to_a },
              limits: ->(io) { io.set_encoding("UTF-8") && Array.new(9) { io.gets(1) } } }
    calls.each do |name, call|
      assert_as_string_io(complete(text), text, name, call)
      assert_as_string_io(streamed(text, 2), text, name, call)
    end
  end

  def test_nothing_that_is_put_back_is_not_a_part_of_a_body
    input = streamed("", 1)
    input.ungetc("")

    assert_equal [true, nil], [input.eof?, input.read(1)]
  end

  # ungetbyte changes a StringIO's content; this one's place and encoding are for all requests.
  (CALLS.keys + ANYWHERE.keys -
   %i[ungetbyte position seek seek_on seek_before set_encoding set_encoding_limit]).each do |name|
    define_method("test_#{name}_of_no_body_is_as_of_an_empty_string_io") do
      assert_as_string_io(Heddle::Rack::NoInput::INSTANCE, "", name, CALLS[name] || ANYWHERE[name])
    end
  end

  def test_byte_order_mark_is_skipped_only_if_the_encoding_asks_for_that
    text = "\uFEFFa"

    assert_equal "a", complete(text).set_encoding("BOM|UTF-8").read.b
    assert_equal text.b, complete(text).set_encoding("UTF-8:UTF-16LE").read.b
  end

  def test_the_input_of_requests_without_a_body_keeps_no_state
    none = Heddle::Rack::NoInput::INSTANCE
    none.seek(3)
    none.pos = 2
    none.set_encoding("UTF-8")
    none.close

    assert_equal [0, Encoding::BINARY, "", false], [none.pos, none.external_encoding, none.read, none.closed?]
    assert Ractor.shareable?(none)
  end

  def test_bytes_that_were_not_read_last_are_not_put_back_into_a_complete_body
    input = complete("ab")
    input.read(1)

    assert_raises(IOError) { input.ungetbyte("x") }
    assert_raises(IOError) { complete("ab").ungetbyte("a") }
    assert_equal "xb", streamed("ab", 1).tap { |one| one.read(1) && one.ungetbyte("x") }.read
  end

  def test_lines_between_paragraphs_are_skipped_as_a_file_does_it
    text = "\na\n\n\n\nb\n\n"
    Tempfile.create do |file|
      file.write(text)
      [complete(text), streamed(text, 2)].each do |input|
        file.rewind

        assert_equal file.readlines(""), input.readlines("")
      end
    end
    assert_equal 2, complete(text).tap { |one| one.seek(2, :CUR) }.pos
  end

  def test_a_separator_may_have_any_encoding
    assert_equal "one,two\nä\n".b, complete(TEXT).gets("ä\n")
    assert_equal "one,two\n", complete(TEXT).gets("ä\n", chomp: true)
  end

  def test_a_streamed_body_cannot_be_read_again
    %i[rewind seek pos= size].each { |name| refute_respond_to streamed("a", 1), name }
  end

  LIBRARIES = {
    "json" => [%({"a":[1,2]}), ->(io) { JSON.load(io) }], # rubocop:disable Security/JSONLoad
    "marshal" => [Marshal.dump({ a: ["ä", 1.5] * 100 }), ->(io) { Marshal.load(io) }], # rubocop:disable Security/MarshalLoad
    "gzip" => [Zlib.gzip("text" * 9_000), ->(io) { Zlib::GzipReader.new(io).each_line.to_a }],
    "yaml" => ["a: [1, ä]\nb: c\n", ->(io) { Psych.safe_load(io) }],
    "copy to a file" => ["line\n" * 40_000, ->(io) { Tempfile.create { |f| [IO.copy_stream(io, f), f.size] } }]
  }.freeze

  def libraries
    require "csv"
    rows = "id,name\r\n#{Array.new(300) { |i| "#{i},\"ä \"\"#{i}\"\"\"\r\n" }.join}"
    LIBRARIES.merge("csv" => [rows, ->(io) { CSV.new(io).to_a }],
                    "csv with headers" => [rows, ->(io) { CSV.new(io, headers: true).map(&:to_h) }],
                    "csv in UTF-8" => [rows, ->(io) { CSV.new(io.set_encoding("UTF-8")).to_a }])
  rescue LoadError
    LIBRARIES
  end

  # The body in a file is one of a server: only there is one.
  def test_libraries_that_take_an_io_take_bodies_in_memory_in_files_and_streamed
    libraries.each do |name, (text, call)|
      expected = call.call(StringIO.new(text.b))

      assert_equal expected, call.call(complete(text)), name
      assert_equal expected, call.call(streamed(text, 7)), name
      in_file = nil
      serve(->(env) { (in_file = call.call(env["rack.input"])) && [200, {}, []] },
            post(text), body_buffer: 1, lint: false)

      assert_equal [expected, 1], [in_file, conversation.engine.spooled], name
    end
  end

  def test_every_call_works_on_a_body_in_a_file
    CALLS.merge(ANYWHERE).each do |name, call|
      found = nil
      serve(->(env) { (found = [outcome(env["rack.input"], call)]) && [200, {}, []] },
            post(TEXT), body_buffer: 1, lint: false)

      assert_equal [outcome(StringIO.new(TEXT.dup), call)], found, name
    end
  end
end
