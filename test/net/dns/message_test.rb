# frozen_string_literal: true

require_relative "support/dns_case"
require "resolv"

# Messages, with Ruby's resolv as the other side.
class DNSMessageTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  IN = Resolv::DNS::Resource::IN
  RECORDS = {
    A: ["192.0.2.1", IN::A.new("192.0.2.1")],
    AAAA: ["2001:db8::1", IN::AAAA.new("2001:DB8::1")],
    CNAME: ["www.example.test", IN::CNAME.new(Resolv::DNS::Name.create("www.example.test."))],
    NS: ["ns.example.test", IN::NS.new(Resolv::DNS::Name.create("ns.example.test."))],
    PTR: ["host.example.test", IN::PTR.new(Resolv::DNS::Name.create("host.example.test."))],
    MX: [[10, "mail.example.test"], IN::MX.new(10, Resolv::DNS::Name.create("mail.example.test."))],
    TXT: ["#{"a" * 255}b", IN::TXT.new("a" * 255, "b")],
    SRV: [[1, 2, 443, "srv.example.test"], IN::SRV.new(1, 2, 443, Resolv::DNS::Name.create("srv.example.test."))],
    HINFO: [%w[cpu os], IN::HINFO.new("cpu", "os")],
    SOA: [["ns.example.test", "dns.example.test", 1, 2, 3, 4, 5],
          IN::SOA.new(Resolv::DNS::Name.create("ns.example.test."), Resolv::DNS::Name.create("dns.example.test."),
                      1, 2, 3, 4, 5)]
  }.freeze

  RECORDS.each do |type, (value, theirs)|
    define_method(:"test_resolv_reads_our_#{type.downcase}_record_and_we_read_its") do
      ours = response(DNS::Record.of("example.test", type, 60, value))
      name, ttl, data = Resolv::DNS::Message.decode(ours.encode).answer.first

      assert_equal ["example.test", 60, theirs], [name.to_s, ttl, data]
      record = DNS::Message.parse(by_resolv(theirs)).answers.first

      assert_equal DNS::Data.from(type, value), record.data
    end
  end

  # By dig, which knows the types that resolv of Ruby 3.3 does not.
  def test_dig_reads_types_that_resolv_does_not_know
    texts = {
      HTTPS: ["\x00\x01\x00\x00\x01\x00\x03\x02h2".b, '1 . alpn="h2"'],
      CAA: [[128, "issue", "ca.test; account=1"], '128 issue "ca.test; account=1"'],
      TYPE65400: ["\x01\x02\xFF".b, "\\# 3 0102FF"]
    }
    serving(->(query) { query.answer(texts.fetch(query.type).first) }) do |dns|
      texts.each do |type, (value, text)|
        assert_equal text, dig(dns, "a.test", type.to_s, "+short").chomp
        assert_equal DNS::Data.from(type, value), dns.ask("a.test", type).answers.first.data
      end
    end
  end

  def test_names_are_compressed_once_they_were_written
    message = response(*Array.new(20) do |number|
      DNS::Record.of("n#{number}.example.test", :CNAME, 60, "example.test")
    end)
    bytes = message.encode

    assert_operator bytes.bytesize, :<, 12 + 18 + (20 * 22)
    assert_equal 20, Resolv::DNS::Message.decode(bytes).answer.size
    assert_equal message.answers, DNS::Message.parse(bytes).answers
  end

  def test_names_beyond_the_reach_of_a_pointer_are_written_whole
    filler = Array.new(80) { DNS::Record.of("example.test", :TXT, 60, "x" * 255) }
    names = Array.new(3) { |number| DNS::Record.of("late.other.test", :NS, number, "ns.late.other.test") }
    message = response(*filler, *names)

    assert_equal names, DNS::Message.parse(message.encode).answers.last(3)
  end

  def test_every_byte_in_a_label_survives
    wire = "\x08a.b\\ \x00\xFF\"\x04test".b
    text = DNS::Name.from_wire(wire)

    assert_equal 'a\.b\\\\\032\000\255".test', text
    assert_equal wire, DNS::Name.to_wire(text)
    100.times do
      labels = Array.new(rand(1..4)) { Random.bytes(rand(1..60)) }
      wire = labels.map { |label| label.bytesize.chr + label }.join.b

      assert_equal wire, DNS::Name.to_wire(DNS::Name.from_wire(wire))
    end
  end

  def test_names_that_are_none_are_named
    ["a..b", ".a", "#{"a" * 64}.test", (["a" * 60] * 5).join("."), "a\\", "a\\25", "a\\256"].each do |name|
      error = assert_raises(DNS::MalformedError, name) { DNS::Name.to_wire(name) }

      assert_includes error.message, "is not a domain name"
    end
    assert_equal "", DNS::Name.to_wire("")
    assert_equal "", DNS::Name.to_wire(".")
  end

  def test_data_that_does_not_fit_its_type_is_named
    { A: "2001:db8::1", AAAA: "192.0.2.1", MX: "mail.test", SRV: [1, 2], SOA: %w[a b] }.each do |type, value|
      error = assert_raises(ArgumentError, DNS::MalformedError) do
        response(DNS::Record.of("a.test", type, 60, value)).encode
      end

      assert_includes error.message, value.is_a?(String) ? value.inspect : type.to_s
    end
    assert_raises(DNS::MalformedError) { response(DNS::Record.of("a.test", :MX, 60, [65_536, "m.test"])).encode }
  end

  def test_records_of_the_wrong_length_are_malformed
    { 1 => 5, 28 => 4, 15 => 1, 33 => 3, 6 => 10, 257 => 1, 16 => 0 }.each do |type, size|
      bytes = [1, 0x8000, 0, 1, 0, 0].pack("n6") + [0, type, 1, 60, size].pack("CnnNn") + ("\x01".b * size)
      if type == 16 # an empty TXT is read, as others do
        assert_equal [], DNS::Message.parse(bytes).answers.first.data.strings
      else
        assert_raises(DNS::MalformedError, "type #{type}") { DNS::Message.parse(bytes) }
      end
    end
  end

  def test_a_message_cut_anywhere_is_malformed
    whole = message_of_every_type
    whole.bytesize.times do |size|
      assert_raises(DNS::MalformedError, size) { DNS::Message.parse(whole.byteslice(0, size)) }
    end
  end

  def test_no_byte_makes_it_raise_anything_else
    whole = message_of_every_type
    (0...whole.bytesize).each do |index|
      [0, 1, 0x3f, 0x40, 0xc0, 0xff].each do |value|
        DNS::Message.parse(whole.dup.tap { |bytes| bytes.setbyte(index, value) })
      rescue DNS::MalformedError
        next
      end
    end
  end

  # 64 KiB of records whose owners are the longest names that there are: bounded by the labels that are followed.
  def test_a_message_made_to_be_slow_is_refused
    name = "\x01a".b * 126
    record = [0xc000 | 23, 1, 1, 60, 4, 1, 2, 3, 4].pack("nnnNnC4")
    bytes = [1, 0x8000, 0, 4_000, 0, 0].pack("n6")
    bytes << [0, 65_400, 1, 60, 253].pack("CnnNn") << name << 0 << (record * 3_999)

    error = assert_raises(DNS::MalformedError) { DNS::Message.parse(bytes) }

    assert_match(/over \d+ labels and pointers/, error.message)
  end

  # A record's data holds pointers, each to the one before it; the next record's owner points to the last.
  def test_a_name_of_too_many_pointers_is_refused
    data = (0...33).map { |number| 0xc000 | (number.zero? ? 12 : 23 + (2 * (number - 1))) }
    bytes = [1, 0x8000, 0, 2, 0, 0, 0, 0xff00, 1, 60, 66, *data, 0xc000 | (23 + 64), 1, 1, 60, 4, 1, 2, 3, 4]
    bytes = bytes.pack("n6CnnNnn33nnnNnC4")

    error = assert_raises(DNS::MalformedError) { DNS::Message.parse(bytes) }

    assert_equal "a name has more than 32 pointers", error.message
  end

  private

  def message_of_every_type
    records = RECORDS.map { |type, (value, _)| DNS::Record.of("example.test", type, 60, value) }
    records << DNS::Record.of("example.test", :HTTPS, 60, "\x00\x01\x00".b)
    response(*records).tap { |message| message.edns = DNS::EDNS.of(options: [[10, "12345678"]]) }.encode
  end

  def response(*records)
    DNS::Message.new(1, 0x8000).tap do |message|
      message.questions << DNS::Question.of("example.test", :ANY)
      message.answers.concat(records)
    end
  end

  def by_resolv(data)
    Resolv::DNS::Message.new(1).tap do |message|
      message.qr = 1
      message.add_answer("example.test.", 60, data)
    end.encode
  end
end
