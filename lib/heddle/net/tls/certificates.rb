# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # The certificates of a listener. The first certificate is for clients that send no host name or an unknown one.
      # The files of the certificates are checked at most once a second. If one has changed, all files are read again.
      # If a new certificate can't be used, the old ones remain in use.
      #
      # In single-process mode, the serving process checks the files when a client connects. In cluster mode, only the
      # master reads the files, and its child processes use what it has read: the master calls {#share} once and then
      # {#refresh} regularly.
      class Certificates
        include MonotonicClock

        # Minimum seconds between two checks of the files.
        CHECK_INTERVAL = 1.0
        DAY = 86_400
        # A certificate that expires within this many seconds is reported once a day.
        EXPIRY_NOTICE = 14 * DAY
        # Maximum bytes of all certificates and keys that processes share. Unused bytes take no memory.
        SHARED_LIMIT = 8 << 20
        # The protocols for ALPN, best first (RFC 7301).
        PROTOCOLS = %w[h2 http/1.1 http/1.0].freeze
        private_constant :CHECK_INTERVAL, :DAY, :EXPIRY_NOTICE, :SHARED_LIMIT

        # What {#load} has read from the files. `stamp` has the stamp of each file (see {KeyFiles.stamp}).
        Loaded = Data.define(:credentials, :contexts, :stamp) do
          def same?(other) = credentials.dump == other.credentials.dump
        end
        private_constant :Loaded

        # @return [Array<#load, #stamp>] the sources of the certificates
        attr_reader :sources

        # @param sources [Array<KeyFiles, SelfSigned>] at least one
        # @param minimum [String] the minimum version of TLS, a key of {VERSIONS}
        # @param protocols [Array<String>] the protocols for ALPN, by their registered names, best first
        # @param clients [ClientCheck] the check of clients' certificates
        # @param on_event [#call, nil] called with an event's name and fields: the certificates were read again, could
        #   not be read, or expire soon
        # @raise [Error]
        def initialize(sources, minimum: "1.2", protocols: PROTOCOLS, clients: ClientCheck.none, on_event: nil)
          @sources = sources
          @clients = clients
          @settings = { minimum: VERSIONS.fetch(minimum), protocols:, clients: }
          @on_event = on_event
          @checked = now
          @reported = -Float::INFINITY
          @loaded = load
          @tried = @loaded.stamp
        end

        # @return [OpenSSL::SSL::SSLContext] for a new connection
        def context
          TicketKeys.renew
          if now - @checked >= CHECK_INTERVAL
            @checked = now
            @shared ? follow : refresh_files
          end
          @loaded.contexts.default
        end

        # Makes the next call of {#context} check the files, even within the interval.
        # @return [void]
        def look_again
          @checked = -Float::INFINITY
        end

        # Shares the certificates with the processes that this one forks later.
        # @return [self]
        # @raise [Error]
        def share
          @shared = SharedText.new(SHARED_LIMIT)
          publish(@loaded)
          self
        end

        # Checks the files. The process that shares the certificates calls this method about once a second.
        # @return [void]
        def refresh
          return if now - @checked < CHECK_INTERVAL

          @checked = now
          refresh_files
        end

        # Reads the files without using the result.
        # @return [Loaded] the argument for {#use}
        # @raise [Error]
        def load
          stamp = stamps
          credentials = Credentials.new(pairs: sources.map(&:load), authorities: @clients.load)
          Loaded.new(credentials:, contexts: Contexts.new(credentials, **@settings), stamp:)
        end

        # @param loaded [Loaded] the certificates for new connections
        # @return [void]
        # @raise [Error]
        def use(loaded)
          return if loaded.same?(@loaded)

          publish(loaded) if @shared
          @loaded = loaded
          @tried = loaded.stamp
          @on_event&.call(:certificates_reloaded, certificates: sources)
          @reported = -Float::INFINITY
          report_expiry
        end

        # @return [Array<KeyPair>] the certificates in use
        def pairs = @loaded.credentials.pairs

        # Reports the certificates that expire soon or have expired, once a day.
        # @return [void]
        def report_expiry
          return if now - @reported < DAY

          @reported = now
          sources.zip(pairs) do |source, pair|
            time = pair.expiry(EXPIRY_NOTICE) or next
            event = time < Time.now ? :certificate_expired : :certificate_expiring
            @on_event&.call(event, certificate: source, expires: time.strftime("%F %R UTC"))
          end
        end

        # @return [Array<Hash{Symbol => Object}>] `file` and `expires` (seconds since 1970) of each certificate in a
        #   file
        def expiries
          sources.zip(pairs).filter_map do |source, pair|
            { file: source.to_s, expires: pair.certificate.not_after.to_i } if source.is_a?(KeyFiles)
          end
        end

        private

        def stamps = [*sources, @clients].map(&:stamp)

        def refresh_files
          current = stamps
          return report_expiry if current == @tried

          @tried = current # so that an unusable file is reported only once
          use(load)
        rescue Error => e
          report_failure(e)
        end

        def publish(loaded)
          return if @shared.write(loaded.credentials.dump)

          raise Error, "the certificates and keys of an address have more than #{SHARED_LIMIT >> 20} MiB"
        end

        # Uses the certificates that the sharing process has read most recently.
        def follow
          version = @shared.version
          return if version == @followed

          @followed = version
          credentials = Credentials.parse(@shared.read)
          @loaded = Loaded.new(credentials:, contexts: Contexts.new(credentials, **@settings), stamp: nil)
        rescue Error, OpenSSL::OpenSSLError => e
          report_failure(e)
        end

        def report_failure(error) = @on_event&.call(:certificates_not_reloaded, reason: error.message)
      end
    end
  end
end
