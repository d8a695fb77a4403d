# frozen_string_literal: true

Rails.application.routes.draw do
  root "notes#index"
  get "up" => "rails/health#show", as: :rails_health_check

  resources :notes, only: %i[index create]
  resources :shouts, only: :create
  get "slow" => "queries#slow"
  get "held" => "queries#held"
  get "levels" => "levels#show"
  get "page" => "pages#show"

  mount ActionCable.server => "/cable"
end
