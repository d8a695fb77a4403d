# frozen_string_literal: true

require "resolv"
require "socket"

module Heddle
  module TestHelpers
    # A DNS server on 127.0.0.1, UDP and TCP on one port that the kernel chooses, that answers from a table.
    # It speaks through Ruby's resolv, so that it shares no code with what it tests, and in threads of its own.
    class NameServer
      Question = Struct.new(:name, :type, :transport, :port)
      TYPES = { "A" => Resolv::DNS::Resource::IN::A, "AAAA" => Resolv::DNS::Resource::IN::AAAA }.freeze

      def self.open(...)
        server = new(...)
        yield server
      ensure
        server&.close
      end

      # @return [Integer]
      attr_reader :port

      # Seconds by which each answer is late, each on its own.
      attr_writer :delay

      # @param negative_ttl [Integer, nil] seconds in the SOA of answers that say "none"; nil: no SOA
      def initialize(negative_ttl: 60)
        @negative_ttl = negative_ttl
        @records = Hash.new { |table, name| table[name] = [] }
        @special = {}
        @truncated = []
        @questions = []
        @held = []
        @hold = 0
        @delay = 0
        @lock = Thread::Mutex.new
        @changed = Thread::ConditionVariable.new
        open_sockets
        @threads = [Thread.new { serve_datagrams }, Thread.new { serve_connections }]
      end

      # The argument for Resolver.new(nameservers:).
      def address = ["127.0.0.1", port]

      # @param name [String]
      # @param addresses [Array<String>]
      def host(name, *addresses, ttl: 60)
        addresses.each do |address|
          type = address.include?(":") ? "AAAA" : "A"
          @records[name] << [type, ttl, TYPES.fetch(type).new(address)]
        end
      end

      def alias(name, target, ttl: 60)
        @records[name] << ["CNAME", ttl, Resolv::DNS::Resource::IN::CNAME.new(Resolv::DNS::Name.create("#{target}."))]
      end

      # Over UDP answers for this name come cut off.
      def truncate(name)
        @truncated << name
      end

      # @param name [String]
      # @yieldparam query [Resolv::DNS::Message]
      # @yieldparam type [String] "A" or "AAAA"
      # @yieldparam transport [Symbol] :udp or :tcp
      # @yieldreturn [Array<String>] the messages to send; none: silence; a Resolv::DNS::Message is encoded
      def on(name, &block)
        @special[name] = block
      end

      # An answer without records.
      # @param code [Integer] RCODE
      def failure(query, code)
        reply_to(query).tap { |message| message.rcode = code }
      end

      # Keeps all answers back until so many questions wait, or until {#release}.
      def hold(count = Float::INFINITY)
        @lock.synchronize { @hold = count }
      end

      def release
        @lock.synchronize do
          @hold = 0
          send_held
        end
      end

      # @return [Array<Question>] all that were asked, or those for one name
      def questions(name = nil)
        @lock.synchronize { name ? @questions.select { |question| question.name == name } : @questions.dup }
      end

      # Waits (in a thread, not in a fiber of a loop) until so many questions have come.
      # @return [Boolean] false after a minute without them
      def wait_for_questions(count)
        limit = now + 60
        @lock.synchronize do
          @changed.wait(@lock, 0.5) while @questions.size < count && now < limit
          @questions.size >= count
        end
      end

      # The answer from the table, as a message that may be changed.
      def answer(query, name, type)
        message = reply_to(query)
        message.rcode = add_answers(message, name, type) ? 0 : 3
        add_soa(message) if message.answer.none? { |_, _, data| data.is_a?(TYPES.fetch(type)) }
        message
      end

      def close
        @threads.each(&:kill).each(&:join)
        @threads.clear
        [@udp, @tcp].each(&:close)
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def open_sockets
        @tcp = TCPServer.new("127.0.0.1", 0)
        @port = @tcp.addr[1]
        @udp = UDPSocket.new
        @udp.bind("127.0.0.1", @port)
      rescue Errno::EADDRINUSE
        [@tcp, @udp].compact.each(&:close)
        retry
      end

      def serve_datagrams
        loop do
          bytes, (_, port, _, ip) = @udp.recvfrom(4_096)
          take(bytes, :udp, port) { |reply| @udp.send(reply, 0, ip, port) }
        end
      end

      def serve_connections
        loop do
          socket = @tcp.accept
          size = socket.read(2)&.unpack1("n")
          if size
            take(socket.read(size), :tcp, socket.remote_address.ip_port) do |reply|
              socket.write([reply.bytesize].pack("n"), reply)
            end
          end
          socket.close
        end
      end

      def take(bytes, transport, port, &transmit)
        return answer_now(bytes, transport, port, &transmit) if @delay.zero? || transport == :tcp

        @threads << Thread.new { sleep(@delay) && answer_now(bytes, transport, port, &transmit) }
      end

      def answer_now(bytes, transport, port, &transmit)
        query = Resolv::DNS::Message.decode(bytes)
        name, kind = query.question.first
        question = Question.new(name.to_s, kind.name[/\w+\z/], transport, port)
        replies = replies_to(query, question)
        @lock.synchronize do
          @questions << question
          @held.concat(replies.map { |reply| [reply, transmit] })
          @changed.broadcast
          send_held if transport == :tcp || @held.size >= @hold
        end
      end

      def send_held
        @held.shift.then { |reply, transmit| transmit.call(reply) } until @held.empty?
      end

      def replies_to(query, question)
        special = @special[question.name]
        return encode(special.call(query, question.type, question.transport)) if special
        return encode(reply_to(query).tap { |message| message.tc = 1 }) if cut_off?(question)

        encode(answer(query, question.name, question.type))
      end

      def cut_off?(question) = question.transport == :udp && @truncated.include?(question.name)

      def encode(messages)
        Array(messages).map { |message| message.is_a?(String) ? message : message.encode }
      end

      def reply_to(query)
        Resolv::DNS::Message.new(query.id).tap do |message|
          message.qr = 1
          message.rd = message.ra = 1
          query.each_question { |name, kind| message.add_question(name, kind) }
        end
      end

      # @return [Boolean] whether the name exists
      def add_answers(message, name, type)
        return false unless @records.key?(name)

        @records[name].each do |kind, ttl, data|
          next unless [type, "CNAME"].include?(kind)

          message.add_answer("#{name}.", ttl, data)
          return add_answers(message, data.name.to_s, type) if kind == "CNAME"
        end
        true
      end

      def add_soa(message)
        return unless @negative_ttl

        zone = Resolv::DNS::Name.create("example.")
        soa = Resolv::DNS::Resource::IN::SOA.new(zone, zone, 1, 2, 3, 4, @negative_ttl)
        message.add_authority("example.", 3_600, soa)
      end
    end
  end
end
