# frozen_string_literal: true

require "cgi/escape"
require "uri"

module Heddle
  module CLI
    class Demo
      # One panel of the page: what it says, what it draws, and the endpoints that it drives.
      #
      # A subclass answers the questions below and is named in Panels::ALL. A script beside the other
      # assets is loaded for it when it names one.
      class Panel
        # @param facts [Facts]
        # @param server [Server, nil] what serves the page, if it is one of Heddle's
        def initialize(facts: Facts.new, server: nil)
          @facts = facts
          @server = server
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

        # Is somebody at it, so that nobody else is let in?
        def busy? = @busy

        # Does the server stop? Then answers that would go on for long end here.
        def stopping? = server ? server.stopping? : false

        # Where the page's own requests go. The Host header says where the browser found the page: behind a proxy or a
        # forwarded port that is not here.
        # @return [Array(String, Integer)]
        def own_address(env)
          url = server&.urls&.find { |one| one.start_with?("http://") }
          return ["127.0.0.1", Integer(env["SERVER_PORT"])] unless url

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
