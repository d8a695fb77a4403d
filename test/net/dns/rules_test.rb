# frozen_string_literal: true

require_relative "support/dns_case"
require_relative "support/zone"

# What a server does whatever its program is: each rule with its RFC.
class DNSRulesTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  ANSWER = ->(query) { query.answer("192.0.2.1") }
  TEXT = ->(query) { query.answer("x" * 3_000) }

  def test_a_response_is_never_answered
    serving(ANSWER) do |dns|
      response = DNS::Message.query("a.test", :A).tap { |message| message.response = true }

      assert_nil dns.udp(response.encode)
      assert_equal 1, dns.server.statistics[:ignored]
    end
  end

  def test_less_than_a_header_is_never_answered
    serving(ANSWER) do |dns|
      (0..11).each { |size| assert_nil dns.udp("\x12".b * size), "#{size} bytes" }
      assert_equal 12, dns.server.statistics[:ignored]
    end
  end

  # A forged source would make the server answer itself without an end.
  def test_packets_to_itself_are_never_answered
    serving(ANSWER) do |dns|
      query = DNS::Message.query("a.test", :A).encode
      same_port = UDPSocket.new
      same_port.bind("127.0.0.2", dns.port)
      same_port.send(query, 0, "127.0.0.1", dns.port)
      dns.ask("b.test", :A)

      assert_nil same_port.wait_readable(0)
      assert_equal 1, dns.server.statistics[:ignored]
    ensure
      same_port&.close
    end
  end

  # Services that answer whatever comes: a query with such a source, forged, would begin a loop.
  def test_packets_from_services_that_answer_everything_are_never_answered
    server = DNS::Server.new("127.0.0.1:0") { flunk "no query" }
    port = DNS::UDPPort.new(Addrinfo.udp("127.0.0.1", 0), server)
    query = DNS::Message.query("a.test", :A).encode
    ports = [0, 7, 9, 13, 17, 19, 37]
    ports.each { |number| port.__send__(:accept, query, Heddle::Net::DatagramSocket::Peer.new("192.0.2.1", number)) }

    assert_equal({ ignored: ports.size }, server.statistics)
  ensure
    port&.close
  end

  def test_a_malformed_query_gets_formerr_with_its_id
    whole = DNS::Message.query("a.test", :A, edns: nil).encode
    header = whole.byteslice(0, 12)
    broken = [
      header, whole.byteslice(0, 15), # cut
      header + "\xC0\x0C\0\x01\0\x01".b, # a pointer to itself
      header + "\xC0\xFF\0\x01\0\x01".b, # a pointer forward
      header + "\x40#{"x" * 64}\0\0\x01\0\x01".b, # a label of 64 bytes
      header + "#{"\x3F#{"x" * 63}" * 5}\0\0\x01\0\x01".b # a name of 320 bytes
    ]
    serving(ANSWER) do |dns|
      formerr = whole.byteslice(0, 2) + "\x81\x01#{"\0" * 8}".b
      broken.each { |bytes| assert_equal formerr, dns.exchange(bytes), bytes.inspect }
    end
  end

  def test_opcodes_but_query_get_notimp
    serving(ANSWER) do |dns|
      (1..15).each do |opcode|
        message = DNS::Message.query("a.test", :A)
        message.flags |= opcode << 11
        answer = dns.ask(message)

        assert_equal [:NOTIMP, opcode, message.id, []],
                     [answer.rcode, answer.opcode, answer.id, answer.answers], "opcode #{opcode}"
      end
    end
  end

  def test_no_question_or_two_get_formerr
    serving(ANSWER) do |dns|
      [0, 2, 65_535].each do |count|
        bytes = DNS::Message.query("a.test", :A, edns: nil).encode
        bytes[4, 2] = [count].pack("n")

        assert_equal :FORMERR, DNS::Message.parse(dns.exchange(bytes)).rcode, "QDCOUNT #{count}"
      end
    end
  end

  def test_two_opt_records_get_formerr
    serving(ANSWER) do |dns|
      bytes = DNS::Message.query("a.test", :A).encode
      bytes[10, 2] = [2].pack("n")

      assert_equal :FORMERR, DNS::Message.parse(dns.exchange(bytes + opt_bytes(DNS::EDNS.of))).rcode
    end
  end

  def test_an_edns_version_but_0_gets_badvers
    serving(ANSWER) do |dns|
      answer = dns.ask(DNS::Message.query("a.test", :A, edns: DNS::EDNS.of(version: 1)))

      assert_equal [:BADVERS, 0, []], [answer.rcode, answer.edns.version, answer.answers]
    end
  end

  def test_opt_is_echoed_only_where_the_query_has_it
    serving(ANSWER) do |dns|
      assert_nil dns.ask("a.test", :A, edns: nil).edns
      edns = dns.ask("a.test", :A, edns: DNS::EDNS.of(size: 4_096, options: [[100, "x"]])).edns

      assert_equal [1_232, 0, []], [edns.size, edns.version, edns.options]
    end
  end

  def test_the_question_is_repeated_in_its_very_case
    serving(ANSWER) do |dns|
      answer = dns.ask("wWw.ExAmple.Test", :A)

      assert_equal DNS::Name.to_wire("wWw.ExAmple.Test"), answer.question.wire
      assert_equal "wWw.ExAmple.Test", answer.answers.first.name
    end
  end

  def test_too_large_is_truncated_with_question_and_opt
    serving(TEXT) do |dns|
      [nil, 512, 1_232, 4_096, 65_535, 0].each do |size|
        answer = dns.ask("a.test", :TXT, edns: size && DNS::EDNS.of(size:))

        assert_predicate answer, :truncated?
        assert_equal ["a.test", []], [answer.question.name, answer.answers]
        assert_equal size.nil?, answer.edns.nil?
      end
    end
  end

  def test_no_more_than_1232_bytes_over_udp
    serving(->(query) { query.answer("x" * query.name.to_i) }) do |dns|
      sizes = (1_100..1_240).step(4).map do |size|
        query = DNS::Message.query(size.to_s, :TXT, edns: DNS::EDNS.of(size: 4_096)).encode
        bytes = dns.exchange(query)
        [bytes.bytesize, DNS::Message.parse(bytes).truncated?]
      end

      assert_operator sizes.map(&:first).max, :<=, 1_232
      assert_operator sizes.reject(&:last).map(&:first).max, :>, 1_220
      assert(sizes.any?(&:last))
    end
  end

  def test_without_edns_no_more_than_512_bytes
    serving(->(query) { query.answer(*Array.new(40) { |number| "192.0.2.#{number}" }) }) do |dns|
      assert_predicate dns.ask("a.test", :A, edns: nil), :truncated?
      assert_equal 40, dns.ask("a.test", :A).answers.size
    end
  end

  def test_additional_records_are_left_out_without_truncation
    more = lambda do |query|
      query.answer("192.0.2.1")
      80.times { |number| query.add(:additionals, DNS::Record.of("n#{number}.test", :A, 60, "192.0.2.2")) }
    end
    serving(more) do |dns|
      answer = dns.ask("a.test", :A)

      refute_predicate answer, :truncated?
      assert_equal 1, answer.answers.size
      assert_includes 40..79, answer.additionals.size
    end
  end

  def test_a_text_is_cut_into_strings_of_255_bytes
    serving(TEXT) do |dns|
      dns.tcp do |socket|
        socket.write(framed(DNS::Message.query("a.test", :TXT).encode))
        data = read_framed(socket).answers.first.data

        assert_equal [255] * 11 + [195], data.strings.map(&:bytesize)
        assert_equal "x" * 3_000, data.text
      end
    end
  end

  def test_any_gets_one_record_set
    zone = Heddle::TestHelpers::Zone.new("zone.test")
    zone.add("www", :TXT, "one", "two").add("www", :A, "192.0.2.1")
    serving(->(query) { zone.answer(query) || query.answer("a", type: :TXT).answer("192.0.2.1", type: :A) }) do |dns|
      assert_equal %i[TXT TXT], dns.ask("www.zone.test", :ANY).answers.map(&:type)
      assert_equal %i[TXT], dns.ask("elsewhere.test", :ANY).answers.map(&:type)
    end
  end

  def test_zone_transfers_are_refused_and_other_meta_types_not_implemented
    serving(ANSWER) do |dns|
      %i[AXFR IXFR].each { |type| assert_equal :REFUSED, dns.ask("a.test", type, edns: nil).rcode }
      %i[TSIG TKEY MAILA OPT].each { |type| assert_equal :NOTIMP, dns.ask("a.test", type, edns: nil).rcode, type }
    end
  end

  def test_classes_but_in_are_refused
    serving(ANSWER) do |dns|
      [2, 3, 4, 254, 255].each do |klass|
        query = DNS::Message.query("version.bind", :TXT)
        query.questions[0] = DNS::Question.of("version.bind", :TXT, klass)

        assert_equal :REFUSED, dns.ask(query).rcode, "class #{klass}"
      end
    end
  end

  def test_negative_answers_of_own_zones_have_the_soa
    zone = Heddle::TestHelpers::Zone.new("zone.test", ttl: 600, minimum: 77)
    zone.add("www", :A, "192.0.2.1")
    serving(->(query) { zone.answer(query) }) do |dns|
      { "www.zone.test" => :NOERROR, "none.zone.test" => :NXDOMAIN }.each do |name, rcode|
        answer = dns.ask(name, :MX)

        assert_equal [rcode, [], true], [answer.rcode, answer.answers, answer.authoritative?]
        assert_equal [["zone.test", :SOA, 77]], answer.authorities.map { |one| [one.name, one.type, one.ttl] }
      end
      assert_equal :REFUSED, dns.ask("elsewhere.test", :A).rcode
    end
  end

  def test_an_answer_that_is_not_an_address_raises_an_argument_error
    { A: ["999.0.2.1", "::1", 5], AAAA: ["192.0.2.1", "::g", "fe80::1%lo", "::/64", 5] }.each do |type, wrong|
      wrong.each do |text|
        error = assert_raises(ArgumentError, text.to_s) { DNS::Record.of("a.test", type, 60, text) }

        assert_match(/#{Regexp.escape(text.inspect)} is not an IPv[46] address such as /, error.message)
      end
    end
  end

  def test_a_ttl_has_31_bits
    [-1, 2**31, 1.5, nil].each do |ttl|
      assert_raises(ArgumentError) { DNS::Record.of("a.test", :A, ttl, "192.0.2.1") }
    end
    assert_equal 0, read_ttl(0xffff_ffff)
    assert_equal 0, read_ttl(0x8000_0000)
    assert_equal 0x7fff_ffff, read_ttl(0x7fff_ffff)
  end

  private

  def opt_bytes(opt) = DNS::MessageWriter.new.tap { |writer| opt.write(writer) }.bytes

  def read_ttl(ttl)
    bytes = [1, 0x8000, 0, 1, 0, 0].pack("n6") + [0, 1, 1, ttl, 4, 192, 0, 2, 1].pack("CnnNnC4")
    DNS::Message.parse(bytes).answers.first.ttl
  end
end
