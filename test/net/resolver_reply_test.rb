# frozen_string_literal: true

require "net/support/resolver_case"
require "ipaddr"

# DNS messages, with Ruby's resolv as the other side.
class ResolverReplyTest < Minitest::Test
  Query = Heddle::Net::Resolver::Query
  Reply = Heddle::Net::Resolver::Reply
  Question = Heddle::Net::DNS::Question
  IN = Resolv::DNS::Resource::IN

  def test_a_query_is_what_resolv_expects
    query = query("www.example", :AAAA)
    message = Resolv::DNS::Message.decode(query.bytes)

    assert_equal [query.id, 0, 1, 0], [message.id, message.qr, message.rd, message.opcode]
    assert_equal [[Resolv::DNS::Name.create("www.example."), IN::AAAA]], message.question
    assert_equal "www.example", query.question.name
  end

  def test_a_query_offers_1232_bytes_by_edns
    bytes = Query.new(Question.of("www.example", :A)).bytes
    plain = Query.new(Question.of("www.example", :A), edns: nil).bytes

    assert_equal "\0\x00\x29\x04\xD0#{"\0" * 6}".b, bytes.byteslice(plain.bytesize..)
    assert_equal [1, 0], [bytes, plain].map { |one| one.unpack1("@10n") }
  end

  def test_two_questions_on_one_socket_have_different_ids
    queries = Query.each_type("www.example", %i[A AAAA])

    assert_equal 2, queries.map(&:id).uniq.size
  end

  def test_ipv6_addresses_are_written_as_libc_writes_them
    samples = %w[:: ::1 1:: 2001:db8::1 2001:db8:0:1:1:1:1:1 2001:0:0:1::1 1:0:0:2:0:0:0:3 2001:0:0:1:0:0:1:2
                 fe80::1:0:0:1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:0]
    samples = samples.map { |text| IPAddr.new(text).hton }
    # A first group that is not zero: libc writes some of the others with a dotted end.
    samples += Array.new(500) { [rand(1..9), *Array.new(7) { [0, 0, 10, rand(65_536)].sample }].pack("n8") }

    samples.each do |bytes|
      assert_equal Addrinfo.tcp(IPAddr.new_ntoh(bytes).to_string, 0).ip_address, ipv6(bytes)
    end
  end

  def test_a_message_cut_anywhere_is_not_an_answer
    query = query("www.example")
    whole = reply_bytes(query)

    assert_equal ["192.0.2.1"], Reply.read(whole, query).answer.addresses
    (0...whole.bytesize).each { |size| assert_nil Reply.read(whole.byteslice(0, size), query), "first #{size} bytes" }
  end

  def test_no_byte_can_make_it_raise
    query = query("www.example")
    whole = reply_bytes(query)
    (2...whole.bytesize).each do |index|
      [0, 1, 0x3f, 0x40, 0x80, 0xc0, 0xc1, 0xff].each do |value|
        Reply.read(whole.dup.tap { |bytes| bytes.setbyte(index, value) }, query)
      end
    end
    header = [query.id, 0x8180, 1, 3, 2, 1].pack("n6")
    2_000.times { Reply.read(header + query.bytes.byteslice(12..) + Random.bytes(rand(80)), query) }
  end

  def test_pointers_that_go_forward_or_in_circles_are_refused
    query = query("www.example")
    question = query.bytes.byteslice(12..)
    start = 12 + question.bytesize
    [start, start + 2, 0xfff].each do |target|
      bytes = [query.id, 0x8180, 1, 1, 0, 0].pack("n6") + question +
              [0xc000 | target, 1, 1, 60, 4, 1, 2, 3, 4].pack("nnnNnC4")

      assert_nil Reply.read(bytes, query)
    end
  end

  def test_a_chain_of_pointers_is_refused_before_it_costs_time
    query = query("www.example")

    assert_equal ["1.2.3.4"], Reply.read(chained(query, 30), query).answer.addresses
    assert_nil Reply.read(chained(query, 40), query)
  end

  def test_of_very_many_addresses_the_first_are_read
    query = query("www.example")
    question = query.bytes.byteslice(12..)
    records = Array.new(600) { |number| [0xc00c, 1, 1, 60, 4, 10, 0, number / 250, number % 250].pack("nnnNnC4") }
    bytes = [query.id, 0x8180, 1, 600, 0, 0].pack("n6") + question + records.join

    assert_equal Query::MAX_ADDRESSES, Reply.read(bytes, query).answer.addresses.size
    strangers = Array.new(600) { [0, 1, 1, 60, 4, 10, 0, 0, 1].pack("CnnNnC4") }

    reply = Reply.read([query.id, 0x8180, 1, 600, 0, 0].pack("n6") + question + strangers.join, query)

    assert_equal [[], 0], [reply.answer.addresses, reply.answer.ttl]
  end

  def test_an_unknown_record_type_is_skipped
    query = query("www.example")
    message = message_for(query)
    message.add_answer("www.example.", 60, IN::TXT.new("text"))
    message.add_answer("www.example.", 60, IN::A.new("192.0.2.1"))

    assert_equal ["192.0.2.1"], Reply.read(message.encode, query).answer.addresses
  end

  def test_an_address_of_the_wrong_size_spoils_the_message
    query = query("www.example")
    bytes = [query.id, 0x8180, 1, 1, 0, 0].pack("n6") + query.bytes.byteslice(12..) +
            [0xc00c, 1, 1, 60, 5, 1, 2, 3, 4, 5].pack("nnnNnC5")

    assert_nil Reply.read(bytes, query)
  end

  def test_upper_case_in_an_answer_is_the_same_name
    query = query("www.example")
    message = message_for(query, "WWW.Example.")
    message.add_answer("wWw.eXample.", 60, IN::A.new("192.0.2.1"))

    assert_equal ["192.0.2.1"], Reply.read(message.encode, query).answer.addresses
  end

  private

  def query(name, type = :A)
    Query.new(Question.of(name, type), edns: nil, max_answers: Query::MAX_ADDRESSES)
  end

  def message_for(query, name = "www.example.")
    Resolv::DNS::Message.new(query.id).tap do |message|
      message.qr = 1
      message.add_question(name, IN::A)
    end
  end

  # An answer whose owner is a pointer to a pointer to a … to the name in question; the chain lies in the data of a
  # record before it, whose type has no data of a known form.
  def chained(query, links)
    question = query.bytes.byteslice(12..)
    start = 12 + question.bytesize + 11
    pointers = Array.new(links) { |link| 0xc000 | (link.zero? ? 12 : start + (2 * (link - 1))) }
    [query.id, 0x8180, 1, 2, 0, 0].pack("n6") + question +
      [0, 1_000, 1, 60, 2 * links, *pointers].pack("CnnNnn*") +
      [0xc000 | (start + (2 * (links - 1))), 1, 1, 60, 4, 1, 2, 3, 4].pack("nnnNnC4")
  end

  def reply_bytes(query)
    message = message_for(query)
    message.add_answer("www.example.", 60, IN::CNAME.new(Resolv::DNS::Name.create("cdn.example.")))
    message.add_answer("cdn.example.", 60, IN::A.new("192.0.2.1"))
    message.encode
  end

  def ipv6(bytes)
    query = query("www.example", :AAAA)
    reply = [query.id, 0x8180, 1, 1, 0, 0].pack("n6") + query.bytes.byteslice(12..) +
            [0xc00c, 28, 1, 60, 16].pack("nnnNn") + bytes
    Reply.read(reply, query).answer.addresses.first
  end
end
