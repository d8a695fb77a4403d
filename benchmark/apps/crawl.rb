# frozen_string_literal: true

require "cgi/escape"

module Bench
  module Apps
    # Pages that can be reached from the first one by links, as both servers send them: equal but for tokens.
    class Crawl
      # Links that are no page for everybody, or change something.
      LEAVE = %r{
        /(?:log_?out|sign_?out|log_?in|sign_?up|register|lost_password|settings\b) |
        \.(?:png|js|css|ico|svg|atom|rss|gem|pdf|csv)\b
      }x

      # @param first [Server]
      # @param second [Server]
      # @param start [Array<String>] paths
      # @param count [Integer] at most so many pages
      def initialize(first, second, start, count)
        @servers = [first, second]
        @start = start
        @pages = {}
        waiting = start.dup
        while @pages.size < count && (path = waiting.shift)
          visit(path, waiting) unless @pages.key?(path)
        end
      end

      # @return [Array<String>]
      def paths = @pages.keys

      # @return [Array<String>] paths of pages that are not the same
      def differing = @pages.reject { |_, same| same }.keys

      private

      def visit(path, waiting)
        first, again, second = [@servers.first, *@servers].map { |server| server.get(path) }
        html = first["content-type"].to_s.include?("html")
        return unless [first, second].all? { |answer| answer.code == "200" } && (html || @start.include?(path))

        @pages[path] = same?(*[first, again, second].map { |answer| answer.body.b.lines })
        return unless html

        waiting.concat(links(first.body.force_encoding("UTF-8").scrub, path) - @pages.keys - waiting)
      end

      # A line that differs in two responses of the same server has a token, or the time.
      def same?(first, again, second)
        first.size == second.size &&
          first.each_index.all? { |index| first[index] == second[index] || first[index] != again[index] }
      end

      def links(body, path)
        body.scan(/<a\b[^>]*\bhref="([^"#]+)/).flatten.filter_map do |link|
          link = CGI.unescapeHTML(link).sub(%r{\Ahttps?://#{Regexp.escape(@servers.first.host)}(?::\d+)?}, "")
          link = File.expand_path(link, File.dirname("#{path}x")) unless link.match?(%r{\A[a-z]+:|\A/})
          link if link.match?(%r{\A/(?!/)\S*\z}) && !link.match?(LEAVE)
        end.uniq
      end
    end
  end
end
