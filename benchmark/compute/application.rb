# frozen_string_literal: true

require "cgi/escape"

module Bench
  module Compute
    # Pages of so many milliseconds on the machine that they were measured on, /page/25 for instance. They allocate as
    # Rails pages do: records that live until the page is written, and many short strings. /queries/25 reads its records
    # from SQLite, and takes a lock that all requests share. /half/25 waits as long as it computes.
    class Application
      # So many of them make a page of one millisecond.
      RECORDS = 18
      # Objects that live as long as the process, as many as a Rails application has: each full collection visits them.
      KEPT = 250_000
      # A request that computes for long does so page by page, and keeps none.
      HOG_PAGE = 25
      COLUMNS = %w[id title author body tags created_at updated_at state].freeze

      # @param databases [#new] makes the database for /queries, in each process at its first query
      def initialize(databases = nil)
        @databases = databases
        @kept = Array.new(KEPT / 2) { |number| [number.to_s] }
        @lock = Mutex.new
        @hits = Hash.new(0)
      end

      # @param env [Hash] Rack's
      # @return [Array(Integer, Hash, Array)]
      def call(env)
        _, kind, milliseconds = env["PATH_INFO"].split("/")
        count = milliseconds.to_i
        body = case kind
               when "page" then new_page(count)
               when "queries" then page(queries(count))
               when "half" then wait(count)
               when "hog" then (count / HOG_PAGE).times.map { new_page(HOG_PAGE).bytesize }.sum.to_s
               when "hello" then "Hello, world!\n" # by which the benchmark sees that the server runs
               else return [404, { "content-type" => "text/plain" }, ["not found\n"]]
               end
        [200, { "content-type" => "text/html" }, [body]]
      end

      private

      def new_page(count) = page(Array.new(count) { |number| records(number) })

      def records(number)
        Array.new(RECORDS) do |index|
          COLUMNS.to_h { |name| [name, "#{name} <#{index}> of #{number} & others"] }
        end
      end

      def page(batches)
        out = "<!doctype html><title>#{batches.size}</title>"
        batches.each do |batch|
          batch.each do |record|
            cells = record.map { |name, value| "<td class=\"#{name}\">#{CGI.escapeHTML(value.to_s)}</td>" }
            out << "<tr>#{cells.join("\n").gsub(/\d+/) { |digits| digits.rjust(4, "0") }}</tr>"
          end
        end
        out << "</html>"
      end

      # A query for each millisecond, and one line of a log that all requests write.
      def queries(count)
        Array.new(count) do |number|
          database = @lock.synchronize { (@hits[number] += 1) && (@database ||= @databases.new) }
          database.query(number, RECORDS)
        end
      end

      def wait(count)
        before = new_page(count / 2)
        sleep(count / 1_000.0)
        "<!doctype html>#{before.bytesize + new_page(count - (count / 2)).bytesize}</html>" # what the load has room for
      end
    end
  end
end
