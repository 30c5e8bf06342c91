# Golden values of unequal probabilities without replacement: R 4.2.2, survey 4.1-1, sampling 2.9.
# Run in this folder: Rscript pps.R. It writes s_pps.csv, s_poisson.csv and pps_results.csv.
library(survey)
library(sampling)
RNGversion("4.2.0")
set.seed(20221101)
clusters <- read.csv("clusters.csv")
clusters$F1 <- (clusters$PAIR + clusters$T2) / 2
n <- 25
pi <- inclusionprobabilities(clusters$size, n)
stopifnot(all(pi < 1))

chosen <- UPmaxentropy(pi) == 1
sample <- cbind(clusters[chosen, ], pi = pi[chosen])
write.csv(sample, "s_pps.csv", row.names = FALSE)

expected <- 60
pi.poisson <- pmin(1, expected * sqrt(clusters$size) / sum(sqrt(clusters$size)))
taken <- UPpoisson(pi.poisson) == 1
poisson <- cbind(clusters[taken, ], pi = pi.poisson[taken])
write.csv(poisson, "s_poisson.csv", row.names = FALSE)

designs <- list(
  pps_hartley_rao = svydesign(~1, fpc = ~pi, data = sample, pps = HR(sum(pi^2) / n), variance = "YG"),
  pps_hartley_rao_sample = svydesign(~1, fpc = ~pi, data = sample, pps = HR(), variance = "YG"),
  poisson = svydesign(~1, fpc = ~pi, data = poisson, pps = poisson_sampling(poisson$pi), variance = "HT")
)
ratios <- list(P = c("TP", "PAIR"), R = c("TP", "T2"), F1 = c("TP", "F1"), B3P = c("B3P", "size"),
               B3R = c("B3R", "size"), clP = c("EXACT", "PINV"))
rows <- list()
for (case in names(designs)) {
  for (name in names(ratios)) {
    f <- lapply(ratios[[name]], function(v) as.formula(paste0("~", v)))
    r <- svyratio(f[[1]], f[[2]], designs[[case]])
    rows[[length(rows) + 1]] <- data.frame(case, estimator = name, quantity = c("est", "se"), value = c(coef(r), SE(r)))
  }
  for (name in c("T2", "PAIR")) {
    t <- svytotal(as.formula(paste0("~", name)), designs[[case]])
    rows[[length(rows) + 1]] <- data.frame(case, estimator = name, quantity = c("est", "se"), value = c(coef(t), SE(t)))
  }
}
write.csv(format(do.call(rbind, rows), digits = 15, trim = TRUE), "pps_results.csv", row.names = FALSE, quote = FALSE)
