# frozen_string_literal: true

require "heddle"

# Visits all pages that can be reached from one, a few at a time.
class Crawler
  # @param at_once [Integer] how many pages are fetched at the same time
  # @param patience [Numeric] seconds that one may take
  def initialize(at_once: 4, patience: 5)
    @at_once = at_once
    @http = Heddle::HTTP::Client.new(timeout: { total: patience })
  end

  # @return [Hash{String => Integer, nil}] the paths and how many links each has; nil for one that could not be had
  def visit(start)
    @found = {}
    @to_visit = Heddle::Channel.new
    @pending = 0
    add(start)
    Heddle.scope { @at_once.times { |i| Heddle.async(name: "worker #{i}") { work } } }
    @found
  end

  private

  def add(uri)
    return if @found.key?(uri.path)

    @found[uri.path] = nil
    @pending += 1
    @to_visit << uri
  end

  # The one who finishes the last page closes the channel, and all workers end.
  def work
    @to_visit.each do |uri|
      links = fetch(uri)
      @found[uri.path] = links&.size
      links&.each { |link| add(link) }
      @to_visit.close if (@pending -= 1).zero?
    end
  end

  def fetch(uri)
    response = @http.get(uri.to_s)
    return unless response.success?

    response.body.scan(/href="([^"]+)"/).map { |(href)| uri.merge(href) }
  rescue Heddle::HTTP::Client::TimeoutError
    nil
  end
end
