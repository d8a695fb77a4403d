# frozen_string_literal: true

require "socket"
require "heddle/net/dns"

module Heddle
  module TestHelpers
    # Queries with something wrong, and random bytes: the same ones for the same seed.
    class FuzzedPackets
      DNS = Heddle::Net::DNS
      TYPES = %i[A AAAA MX TXT SOA NS CNAME SRV CAA HTTPS ANY AXFR OPT TSIG TYPE1000].freeze
      INTERESTING = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xc1, 0xff].freeze

      # Whether a server has to answer it: a header, and no response.
      def self.answered?(packet) = packet.bytesize >= 12 && packet.getbyte(2) < 0x80

      def initialize(seed)
        @random = Random.new(seed)
      end

      # @param id [Integer] of the message
      # @return [String]
      def next(id)
        packet = pick([method(:noise), method(:flipped), method(:cut), method(:counted), method(:with_records)]).call
        packet[0, 2] = [id & 0xffff].pack("n") if packet.bytesize >= 2
        packet
      end

      private

      def pick(list) = list[@random.rand(list.size)]

      def noise
        @random.bytes(@random.rand(0..120)).tap { |bytes| quiet(bytes) }
      end

      # Half of them queries of opcode 0, or most would end at the header.
      def quiet(bytes)
        bytes.setbyte(2, @random.rand(2)) if bytes.bytesize > 2 && @random.rand(2).zero?
      end

      def query
        labels = Array.new(@random.rand(1..5)) { @random.bytes(@random.rand(1..20)) }
        name = DNS::Name.from_wire(labels.map { |label| label.bytesize.chr + label }.join.b)
        options = Array.new(@random.rand(3)) { [@random.rand(20), @random.bytes(@random.rand(30))] }
        edns = if @random.rand(3).zero?
                 nil
               else
                 DNS::EDNS.of(size: @random.rand(65_536), dnssec: @random.rand(2).zero?,
                              options:)
               end
        DNS::Message.query(name, pick(TYPES), edns:)
      end

      def flipped
        bytes = query.encode
        @random.rand(1..4).times { bytes.setbyte(@random.rand(bytes.bytesize), pick(INTERESTING)) }
        bytes
      end

      def cut
        bytes = query.encode
        bytes = bytes.byteslice(0, @random.rand(bytes.bytesize))
        @random.rand(2).zero? ? bytes : bytes + @random.bytes(@random.rand(40))
      end

      def counted
        bytes = query.encode
        bytes[4 + (2 * @random.rand(4)), 2] = [pick([0, 1, 2, 8, 9, 255, 65_535])].pack("n")
        bytes
      end

      # Records in a query, and pointers in them.
      def with_records
        bytes = query.encode
        count = @random.rand(1..6)
        bytes[6, 2] = [count].pack("n")
        count.times do
          owner = pick(["\0".b, [0xc000 | @random.rand(bytes.bytesize + 4)].pack("n"), "\x03abc\0".b])
          data = @random.bytes(@random.rand(12))
          bytes << owner << [pick([1, 5, 6, 15, 16, 28, 33, 41, 64, 65, 257, 1_000]), 1,
                             @random.rand(2**32)].pack("nnN")
          bytes << [pick([data.bytesize, 0, 65_535])].pack("n") << data
        end
        bytes
      end
    end

    # Sends fuzzed packets to a server, and looks at what comes back.
    class Fuzzing
      # Packets under way: no more than the socket's buffer takes.
      BATCH = 64
      PATIENCE = 60

      def initialize(port, seed)
        @packets = FuzzedPackets.new(seed)
        @socket = UDPSocket.new
        @socket.connect("127.0.0.1", port)
      end

      # @param count [Integer]
      # @return [Hash{Symbol => Integer}] RCODEs and how often
      # @raise [RuntimeError] for a packet that was answered wrongly; the server's silence included
      def run(count)
        rcodes = Hash.new(0)
        (count.to_f / BATCH).ceil.times do
          sent = Array.new(BATCH) { |id| @packets.next(id) }
          sent.each { |packet| @socket.send(packet, 0) }
          await(sent, rcodes)
        end
        rcodes
      ensure
        @socket.close
      end

      private

      def await(sent, rcodes)
        open = sent.each_index.select { |id| FuzzedPackets.answered?(sent[id]) }
        until open.empty?
          raise "no answer to #{open.map { |id| sent[id] }.inspect}" unless @socket.wait_readable(PATIENCE)

          id, flags = (answer = @socket.recv(65_535)).unpack("nn")
          raise "#{answer.inspect} answers nothing" unless open.delete(id)
          raise "#{answer.inspect} to #{sent[id].inspect} is no response" if flags < 0x8000 || answer.bytesize > 1_232

          rcodes[Heddle::Net::DNS::Message.parse(answer).rcode] += 1
        end
      end
    end
  end
end
