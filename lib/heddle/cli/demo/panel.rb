# frozen_string_literal: true

require "cgi/escape"
require "uri"

module Heddle
  module CLI
    class Demo
      # One panel of the page: its text, its drawings, and its endpoints.
      #
      # A subclass answers the questions below and is named in Panels::ALL. A script beside the other
      # assets is loaded for it when it names one.
      class Panel
        # @param facts [Facts]
        # @param server [Server, nil] what serves the page, if it is this process's
        # @param urls [#call] gives the addresses of the server where there is no `server`
        def initialize(facts: Facts.new, server: nil, urls: -> { [] })
          @facts = facts
          @server = server
          @urls = urls
        end

        # @return [String] the anchor in the page, and the name of the panel's element
        def slug = raise(NotImplementedError, "#{self.class} has to say its slug")

        # @return [String] plain text
        def title = raise(NotImplementedError, "#{self.class} has to say its title")

        # @return [String] what the panel shows, as HTML
        def lead = raise(NotImplementedError, "#{self.class} has to say its lead")

        # @return [String] HTML of the panel's buttons and settings
        def controls = ""

        # @return [String] HTML of the panel's drawing
        def stage = raise(NotImplementedError, "#{self.class} has to say its stage")

        # @return [String, nil] the name of the asset that brings the panel to life
        def script = nil

        # @return [Hash{String => #call}] Rack applications by path
        def routes = {}

        # @return [Hash{String => #call}] Rack applications by the path that they are mounted at
        def mounts = {}

        # @return [Array<Method>] the methods whose source the page shows as "the code behind it"
        def shown = []

        # @param method [Method] one that is written with `def` and `end` on lines of their own
        # @return [String] its source, as it stands in the file, without the indentation
        def self.source_of(method)
          file, line = method.source_location
          lines = File.readlines(file).drop(line - 1)
          indent = lines.first[/\A */]
          last = lines.index { |text| text.start_with?("#{indent}end") }
          lines[0..last].map { |text| text.delete_prefix(indent) }.join
        end

        private

        attr_reader :facts, :server

        # The body of an answer during which the panel is busy.
        def alone(body)
          Enumerator.new do |lines|
            @busy = true
            body.each { |line| lines << line }
          ensure
            @busy = false
          end
        end

        # Does a visitor use it, so that no other is let in?
        def busy? = @busy

        # Does the server stop? Then answers that would go on for long end here.
        def stopping? = server ? server.stopping? : false

        # Where the page's own requests go: the server's first TCP address. The Host header does not choose it, or a
        # client could have requests sent to any port of this machine.
        # @return [Array(String, Integer)]
        # @raise [BadParameter]
        def own_address
          url = (server&.urls || @urls.call).find { |one| one.start_with?("http://", "https://") } or
            raise BadParameter, "This panel works where `heddle demo` listens on a TCP address."
          url = URI(url)
          [url.hostname == "localhost" ? "127.0.0.1" : url.hostname, url.port]
        end

        def escape(text)
          CGI.escapeHTML(text)
        end
      end
    end
  end
end
